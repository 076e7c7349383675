# SPDX-License-Identifier: Apache-2.0
# Completion of `convoy` for bash: source this file, or install it.
_convoy() {
  local typed=${COMP_LINE:0:COMP_POINT} words current word
  read -ra words <<<"$typed"
  [[ $typed != *[[:space:]] ]] || words+=('')
  current=${words[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    [[ $word != *= ]] || compopt -o nospace
    # bash completes behind the last `=` alone.
    [[ $current != *=* ]] || word=${word#"${current%=*}="}
    COMPREPLY+=("$word")
  done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -o bashdefault -F _convoy convoy
