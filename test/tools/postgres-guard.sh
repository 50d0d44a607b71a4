# Kills what runs in a folder and removes it, as soon as standard input ends. The process that holds the other end of that
# pipe may be killed: the pipe ends with it all the same.
folder=$1
trap '' HUP INT TERM
cat >/dev/null

# A server and its children work in its data folder. That finds children whose parent was killed, too.
find_processes() {
  find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$folder" -o -lname "$folder/*" \) 2>/dev/null | cut -d/ -f3
}

processes=$(find_processes)
while [ -n "$processes" ]; do
  kill -KILL $processes 2>/dev/null
  sleep 0.05
  processes=$(find_processes)
done

# A server that was killed leaves a segment of shared memory behind; its lock file names it.
segment=$(sed -n '7s/.* //p' "$folder/data/postmaster.pid" 2>/dev/null)
[ -z "$segment" ] || ipcrm -m "$segment" 2>/dev/null
rm -rf -- "$folder"
