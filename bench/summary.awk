# Of lines `whose name value unit`, rounds of `ayre` and of `other` (-v other=NAME; `own` unless
# said) by turns: the medians, and the ratio of each pair, for what both have measured.
BEGIN { if (other == "") other = "own" }
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{ if (!($2 in seen)) { seen[$2]; names[++count] = $2; unit[$2] = $4 }
  value[$1, $2, ++rounds[$1, $2]] = $3 }
END {
    printf "  %-18s %10s %10s  %-5s %s\n", "", "ayre", other, "", "ratio: median, range"
    for (c = 1; c <= count; c++) {
        name = names[c]; n = rounds["ayre", name]
        if (n == 0 || rounds[other, name] != n) continue
        for (i = 1; i <= n; i++) {
            a[i] = value["ayre", name, i]; b[i] = value[other, name, i]; r[i] = a[i] / b[i]
        }
        ratio = median(r, n)
        printf "  %-18s %10.4g %10.4g  %-5s %.2f, %.2f to %.2f\n", \
            name, median(a, n), median(b, n), unit[name], ratio, r[1], r[n]
    }
}
