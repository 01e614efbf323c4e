# Reads the blocks of code of a page, and what comments before them say of them, which no reader
# sees:
#
#   <!-- given:       lines that the block needs to compile, or to run
#   LINES
#   -->
#
#   <!-- not run: REASON -->      of a block of the shell, or a Rust block that is ignored
#
# A Rust block whose first line is `// src/...` is that file of a project that the page makes.
#
# as=page prints the page with the given lines in its Rust blocks, hidden as rustdoc and mdBook hide
# lines; as=shell prints a program of its shell blocks, which says where it is, and of such files.

function refuse(what) {
    print FILENAME ":" FNR ": " what > "/dev/stderr"
    failed = 1
}

function put(line) {
    if (as == "page") print line
}

# A page has as many lines as before, for those that messages name.
function open_rust() {
    is_rust = language !~ /ignore/
    has_main = given ~ /fn main/
    if (given != "") put("\n")
    put($0)
    if (as == "page" && is_rust) printf "%s", hidden
}

function open_shell() {
    is_shell = reason == ""
    if (as == "page") {
        print
    } else if (is_shell) {
        print "at=" FILENAME ":" FNR "; echo \"+ $at\""
        printf "%s", given
    }
}

function open_file(name) {
    is_file = 1
    print "mkdir -p $(dirname " name ")"
    print "cat >" name " <<\"END_OF_FILE\""
}

function close_block() {
    if (is_file) print "END_OF_FILE"
    if (is_rust && !has_main) {
        put("# Ok::<(), Box<dyn std::error::Error>>(())")
        # In exchange for the line.
        is_blank_due = 1
    }
    put($0)
    is_open = is_rust = is_shell = is_file = 0
    given = hidden = reason = ""
}

FNR == 1 { is_blank_due = 0 }
is_blank_due { is_blank_due = 0; if (NF == 0) next }

is_reading && /^-->$/ { is_reading = 0; next }
is_reading { given = given $0 "\n"; hidden = hidden "# " $0 "\n"; next }
/^<!-- given:$/ { is_reading = 1; next }
/^ *<!-- not run: .* -->$/ { reason = $0 }

/^ *```/ && is_open { close_block(); next }
/^ *```/ {
    is_open = is_first = 1
    language = $0
    sub(/^ *```/, "", language)
    if (language == "") refuse("a block without a language: text, if it is in none")
    if (language ~ /ignore/ && reason == "") refuse("ignored without <!-- not run: REASON -->")
    if (language ~ /^rust/) open_rust()
    else if (language == "sh") open_shell()
    else put($0)
    next
}

is_rust && /fn main/ { has_main = 1 }
as == "shell" && is_first && language ~ /^rust/ && $1 == "//" && $2 ~ /^src\// { open_file($2) }
{ is_first = 0 }
(is_shell || is_file) && as == "shell" { print }
{ put($0) }

END {
    if (is_open || is_reading) refuse("a block, or a comment, that does not end")
    exit failed
}
