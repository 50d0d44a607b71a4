import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { AccessTokens, type Granted } from "../../src/target/access-token.ts";
import type { Answer } from "../../src/target/conversation.ts";

const answer = (status: number): Answer => ({
  ...{ status, headers: new Headers(), text: "", json: undefined, waitMs: undefined, sends: true },
});
const isStale = ({ status }: Answer) => status === 401;

/** A service that grants tokens "1", "2", … and knows some of them no more. */
function makeService(lastsMs = 7_200_000) {
  const used: string[] = [];
  const ended = new Set<string>();
  let granted = 0;
  return {
    used,
    ended,
    granted: () => granted,
    grant: async (): Promise<Granted> => ({ token: String(++granted), lastsMs }),
    use: async (token: string) => {
      used.push(token);
      return answer(ended.has(token) ? 401 : 200);
    },
  };
}

describe("an access token", () => {
  test("is asked for once, by all that need it at the same time, and kept", async () => {
    const tokens = new AccessTokens(() => 0);
    const { grant, use, used, granted } = makeService();
    await Promise.all([1, 2, 3].map(() => tokens.use(["app"], grant, use, isStale)));
    await tokens.use(["app"], grant, use, isStale);
    assert.deepEqual([granted(), used], [1, ["1", "1", "1", "1"]]);
  });

  test("is another one for other credentials", async () => {
    const tokens = new AccessTokens(() => 0);
    const { grant, use, used } = makeService();
    await tokens.use(["app", "a"], grant, use, isStale);
    await tokens.use(["app", "b"], grant, use, isStale);
    assert.deepEqual(used, ["1", "2"]);
  });

  test("is asked for anew a minute before it ends", async () => {
    let now = 0;
    const tokens = new AccessTokens(() => now);
    const { grant, use, used } = makeService(600_000);
    await tokens.use(["app"], grant, use, isStale);
    now = 539_999;
    await tokens.use(["app"], grant, use, isStale);
    now = 540_000;
    await tokens.use(["app"], grant, use, isStale);
    assert.deepEqual(used, ["1", "1", "2"]);
  });

  test("that the service ended before its time is asked for anew, once", async () => {
    const tokens = new AccessTokens(() => 0);
    const { grant, use, used, ended } = makeService();
    await tokens.use(["app"], grant, use, isStale);
    ended.add("1");
    assert.equal((await tokens.use(["app"], grant, use, isStale)).status, 200);
    assert.deepEqual(used, ["1", "1", "2"]);
    ended.add("2").add("3");
    assert.equal((await tokens.use(["app"], grant, use, isStale)).status, 401);
    assert.deepEqual(used.slice(3), ["2", "3"]);
  });

  test("that was not granted is asked for again the next time", async () => {
    const tokens = new AccessTokens(() => 0);
    const { grant, use, used } = makeService();
    const refuse = () => Promise.reject(new DeliveryError("No token", { sent: "no" }));
    await assert.rejects(tokens.use(["app"], refuse, use, isStale), /No token/);
    await tokens.use(["app"], grant, use, isStale);
    assert.deepEqual(used, ["1"]);
  });
});
