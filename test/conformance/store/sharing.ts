import assert from "node:assert/strict";
import type { SpendArgs, Store } from "../../../src/store/store.ts";
import { noon } from "../../tools/rows.ts";
import { minute, type Suite } from "./suite.ts";

/** What gateways on one ledger share besides events. */
export function testSharing(suite: Suite): void {
  testBudgets(suite);
  testDocuments(suite);
}

function spend(store: Store, count: number, parts: Partial<SpendArgs> = {}) {
  return store.spend({ route: "reviews", count, limit: 7, windowMs: minute, now: noon, ...parts });
}

function testBudgets({ on }: Suite): void {
  on("grants no more than a route's budget, and the rest of it to who wants more", async (store) => {
    assert.deepEqual(await spend(store, 5), { granted: 5, windowStart: noon });
    assert.deepEqual(await spend(store, 5, { now: noon + 1 }), { granted: 2, windowStart: noon });
    assert.deepEqual(await spend(store, 5, { now: noon + minute - 1 }), { granted: 0, windowStart: noon });
    assert.deepEqual(await spend(store, 1, { now: noon + 1, route: "other" }), { granted: 1, windowStart: noon + 1 });
    assert.deepEqual(await spend(store, 9, { route: "greedy" }), { granted: 7, windowStart: noon });
  });

  on("opens a new window when one is over, and when the clock was set back", async (store) => {
    await spend(store, 7);
    assert.deepEqual(await spend(store, 5, { now: noon + minute }), { granted: 5, windowStart: noon + minute });
    assert.deepEqual(await spend(store, 5, { now: noon + minute + 1 }), { granted: 2, windowStart: noon + minute });
    assert.deepEqual(await spend(store, 5, { now: noon }), { granted: 5, windowStart: noon });
  });

  on("follows a limit that changes", async (store) => {
    await spend(store, 7);
    assert.equal((await spend(store, 5, { limit: 9 })).granted, 2);
    assert.equal((await spend(store, 5, { limit: 3 })).granted, 0);
    assert.equal((await spend(store, 5, { limit: 10 })).granted, 1, "nothing was lost by the lower one");
    assert.equal((await spend(store, 5, { route: "closed", limit: 0 })).granted, 0);
  });

  on("takes back what was not used, in its own window only and never more than was spent", async (store) => {
    const giveBack = (count: number, windowStart = noon, route = "reviews") =>
      store.giveBack({ route, count, windowStart });
    await spend(store, 7);
    await giveBack(3);
    assert.equal((await spend(store, 5)).granted, 3);
    await giveBack(3, noon - minute);
    await giveBack(3, noon, "other");
    assert.equal((await spend(store, 5)).granted, 0);
    await giveBack(100);
    assert.equal((await spend(store, 100)).granted, 7);
  });

  on("is exact when fifty spend at once", async (_watched, place) => {
    const stores = [place.store, await place.open()];
    const spent = await Promise.all(
      Array.from({ length: 50 }, (_, index) => spend(stores[index % 2]!, 1 + (index % 2), { limit: 40 })),
    );
    assert.equal(
      spent.reduce((sum, { granted }) => sum + granted, 0),
      40,
    );
    assert.deepEqual(new Set(spent.map(({ windowStart }) => windowStart)), new Set([noon]));
  });
}

function testDocuments({ on }: Suite): void {
  on("keeps small texts under their names, with a number that every change raises", async (store) => {
    const write = (seen: number, text: string, name = "a") => store.writeDocument({ name, seen, text });
    assert.equal(await store.readDocument({ name: "a" }), undefined);
    assert.equal(await write(1, "no"), false, "it is not there yet");
    assert.equal(await write(0, "one"), true);
    assert.equal(await write(0, "no"), false, "somebody else has made it");
    assert.deepEqual(await store.readDocument({ name: "a" }), { version: 1, text: "one" });
    assert.equal(await write(1, "two 東京"), true);
    assert.equal(await write(1, "no"), false, "somebody else has changed it");
    assert.equal(await write(3, "no"), false);
    assert.deepEqual(await store.readDocument({ name: "a" }), { version: 2, text: "two 東京" });
    assert.equal(await write(0, "other", "b"), true);
    assert.deepEqual(await store.readDocument({ name: "b" }), { version: 1, text: "other" });
  });

  on("loses no change when many make theirs at once", async (_watched, place) => {
    const stores = [place.store, await place.open()];
    const add = async (store: Store, word: string) => {
      for (;;) {
        const { version, text } = (await store.readDocument({ name: "words" })) ?? { version: 0, text: "" };
        if (await store.writeDocument({ name: "words", seen: version, text: `${text}${word} ` })) return;
      }
    };
    const words = Array.from({ length: 12 }, (_, index) => `w${index}`);
    await Promise.all(words.map((word, index) => add(stores[index % 2]!, word)));
    const { version, text } = (await stores[0]!.readDocument({ name: "words" }))!;
    assert.equal(version, words.length);
    assert.deepEqual(text.trim().split(" ").sort(), words.sort());
  });
}
