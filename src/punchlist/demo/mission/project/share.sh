awk '{ total += $2; seconds[$1] = $2 } END { for (name in seconds) printf "%s %ds %d%%\n", name, seconds[name], 100 * seconds[name] / total + 0.5 }' stats.txt | sort -t ' ' -k 2 -rn
