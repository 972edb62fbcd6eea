# Stands for a profiler: seconds per plugin of a build.
cat > stats.txt <<'TIMES'
ts-loader 28
css-loader+postcss 12
terser-webpack-plugin 9
other 23
TIMES
sleep 3
awk '{ total += $2; seconds[$1] = $2 } END { for (name in seconds) printf "%-22s %2d s  %2d %%\n", name, seconds[name], 100 * seconds[name] / total + 0.5 }' stats.txt | sort -k 2 -rn
