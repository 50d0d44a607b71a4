# Ends the gateways whose home is below a folder and removes it, as soon as standard input ends. The harness holds the other
# end of that pipe: it may be killed, and the pipe ends with it all the same. A folder with a file "kept" stays.
folder=$1
trap '' HUP INT TERM
cat >/dev/null

find_processes() {
  grep -lszF "POSTERN_HOME=$folder/" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

processes=$(find_processes)
while [ -n "$processes" ]; do
  kill -KILL $processes 2>/dev/null
  sleep 0.05
  processes=$(find_processes)
done

awk -v below="$folder/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | while read -r place; do
  umount "$place"
done
[ -e "$folder/kept" ] || rm -rf -- "$folder"
