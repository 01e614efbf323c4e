# Of lines `whose program name value unit`, rounds of `tcp`, `unix`, `ayre` (TCP with the library)
# and `rings` (AF_UNIX with it) by turns: the medians, and how many times better these are, in the
# median of rounds. Less is better in units of time.
function sort(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
}
function median(list, n) {
    sort(list, n)
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function middle(whose, key,    i, n, list) {
    n = rounds[whose, key]
    for (i = 1; i <= n; i++) list[i] = value[whose, key, i]
    if (n == 0) return "-"
    n = median(list, n)
    return sprintf(n < 1000 ? "%.4g" : "%.0f", n)
}
function times(whose, other, key,    i, n, list) {
    n = rounds[whose, key]
    if (n == 0 || rounds[other, key] != n) return "-"
    for (i = 1; i <= n; i++) {
        list[i] = value[whose, key, i] / value[other, key, i]
        if (unit[key] ~ /^(us|ms|s)$/) list[i] = 1 / list[i]
    }
    i = median(list, n)
    return sprintf("%.2f, %.2f to %.2f", i, list[1], list[n])
}
{
    key = $2 " " $3
    if (!(key in unit)) { names[++count] = key; unit[key] = $5 }
    value[$1, key, ++rounds[$1, key]] = $4
}
END {
    form = "  %-9s %-16s %10s %10s %10s %10s  %-7s %-19s %-19s %s\n"
    printf form, "", "", "TCP", "AF_UNIX", "TCP", "AF_UNIX", "", "", "TCP with Ayre", "AF_UNIX"
    printf form, "program", "", "", "", "with Ayre", "with Ayre", "", "times TCP", "times AF_UNIX",
        "with Ayre"
    for (c = 1; c <= count; c++) {
        key = names[c]
        split(key, words, " ")
        printf form, words[1], words[2], middle("tcp", key), middle("unix", key),
            middle("ayre", key), middle("rings", key), unit[key], times("ayre", "tcp", key),
            times("ayre", "unix", key), times("rings", "unix", key)
    }
}
