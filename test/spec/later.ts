// Preloaded into a gateway: a minute goes by with each SIGUSR2, and it says so.
const realNow = Date.now;
let minutes = 0;

Date.now = () => realNow() + minutes * 60_000;

process.on("SIGUSR2", () => {
  minutes += 1;
  process.stderr.write(`minute ${minutes} has gone by\n`);
});
