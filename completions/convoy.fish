# SPDX-License-Identifier: Apache-2.0
# Completion of `convoy` for fish.
function __convoy_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete -- $words[2..-1] "$current" 2>/dev/null
end
# Without candidates fish completes names of files.
complete -c convoy -f -n 'count (__convoy_candidates) >/dev/null' -a '(__convoy_candidates)'
