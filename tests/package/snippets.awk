# Writes a program text of all C++ snippets in the pages given: indented blocks that have statements of the library in
# them. Each is a function of its own, in which the names of stand_ins.h mean something; what begins with a function is
# taken as it is. `...` and `(…)` stand for what a reader would fill in.
function flush_block(  n, lines, k, line, code, includes, whole) {
  if (block == "") return
  if (block !~ /;/ || block !~ /(trireme::|ps::|parallel::|#include|client\.)/ || block ~ /^(\$|trireme |sudo |cmake )/) {
    block = ""
    return
  }
  ++count
  n = split(block, lines, "\n")
  code = ""
  for (k = 1; k <= n; ++k) {
    line = lines[k]
    if (line ~ /^#include/) { print line; continue }
    if (line ~ /^trireme train/) continue  # the same on the command line
    gsub(/\.\.\. /, "", line)
    gsub(/\(…\)/, "(;;)", line)
    code = code line "\n"
  }
  whole = code ~ /^\n*(int main|torch::Tensor forward)\(/
  printf "namespace snippet_%d {\nusing namespace stand_ins;\n#line %d \"%s\"\n", count, start, page
  if (whole) print code
  else printf "[[maybe_unused]] void run() {\n%s}\n", code
  print "}\n"
  block = ""
}
FNR == 1 { flush_block(); blank = 1; page = FILENAME; inside = 0; fenced = 0 }
/^```/ { fenced = !fenced; inside = 0; flush_block() }  # whole files, which script/walkthrough_test.sh builds
fenced { next }
/^    / && (inside || (blank && $0 !~ /^ *([-*|]|[0-9]+\.) /)) {
  if (!inside) { start = FNR; inside = 1 }
  block = block (block == "" ? "" : "\n") substr($0, 5)
  blank = 0
  next
}
/^$/ { if (inside) block = block "\n"; blank = 1; next }
{ inside = 0; flush_block(); blank = 0 }
END { flush_block(); if (count == 0) exit 1 }
