/** First thing the supervisor writes. */
export const readyLine = "ready\n";

/** Told to the supervisor while a command runs: end it. Ignored when none runs. */
export const stopLine = "stop\n";

/**
 * One request: a header line and then exactly as many bytes as it says, so that nothing needs quoting.
 * `set` adds an environment variable (`NAME=value`) for the commands after it; `run` runs a command line. `body` must not
 * hold NUL, which no shell can carry.
 */
export function request(verb: "set" | "run", body: string, mark: string): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(`${verb} ${bytes.length} ${mark}\n`), bytes]);
}

/**
 * Runs in bash (4.1 or newer, for `{fd}`) inside the workspace and runs its commands one after the other. Answers with the
 * output, the mark of the request and three digits of exit status. When its standard input ends, it ends all that its
 * commands left and then itself.
 *
 * Why it is written as it is:
 * - Descriptors above 2 that whoever started the gateway left open would reach every command, so they are closed first.
 * - The gateway's end is a socket, and `echo >/dev/stderr` cannot open a socket again; `cat` makes it a pipe.
 * - All of a command's output comes before its mark, because both go through that one pipe. What a process left behind
 *   writes later ends up in the next command's output, as on any terminal.
 * - `set -m` gives each command a process group of its own and leaves SIGINT as it was. While it waits it is off, so that
 *   a command that is stopped does not count as ended (`wait -f`, made for that, can spin for ever in bash 5.2).
 * - The command line goes through standard input: argv is public on the host and ends at 128 KiB. `set`, `exec` and `shift`
 *   hide how it came in.
 * - `LC_ALL=C` (not exported) makes `read -N` count bytes.
 * - The stopper reads standard input while a command runs; when the gateway is gone, that too stops the command.
 */
export const supervisor = `
exec 2>/dev/null
for fd in /dev/fd/*; do fd=\${fd##*/}; ((fd > 2)) && exec {fd}>&-; done
exec > >(exec cat)
relay=$!
LC_ALL=C environment=() groups=()

run() {
  set -m
  (
    ((\${#environment[@]})) && export "\${environment[@]}"
    exec bash --norc --noprofile -c 'set -- "$(</dev/stdin)"; exec </dev/null; eval "shift;$1"'
  ) <<<"$body" 2>&1 &
  command=$!
  groups+=("$command")
  { read -r; kill -KILL -- "-$command" "$command"; } &
  stopper=$!
  set +m
  wait "$command"
  status=$?
  kill -KILL "$stopper"
  wait "$stopper"
  printf '%s %03d\\n' "$mark" "$status"
}

printf '${readyLine.trimEnd()}\\n'
while read -r verb length mark; do
  case $verb in
    set) IFS= read -r -N "$length" body && environment+=("$body") ;;
    run) IFS= read -r -N "$length" body && run ;;
  esac
done
for group in "\${groups[@]}"; do kill -KILL -- "-$group"; done
exec >&-
wait "$relay"
`;
