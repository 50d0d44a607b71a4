/** What is to be made of an `errcode` other than 0. */
export type Fate =
  | { readonly as: "later"; readonly waitMs?: number }
  | { readonly as: "refused"; readonly advice?: string };

/**
 * Codes that pass; nothing was posted. Busy (-1), of which the vendor says to try again
 * (https://developer.work.weixin.qq.com/document/path/90313). A token that is refused right after it was given
 * (40014, 42001) is not known everywhere yet. The last one is a connection that lost its subscription.
 */
const passing = new Set([-1, 40014, 42001, 846609]);

/** Too often, or too much at once. Nothing was posted; WeCom counts by the minute and names no time. */
const tooOften = new Set([45009, 45033]);
const tooOftenMs = 60_000;

const advice = new Map([
  [40001, 'check the "secret"'],
  [40013, 'check "corp_id", or "bot_id" and "bot_secret"'],
  [40056, 'check the "agent_id"'],
  [40058, "check the address; the text may be too long"],
  [60011, "let the app see the people and departments that it writes to"],
  [60020, "add the gateway's address to the app's trusted addresses"],
  [81013, "none of the people, departments and tags exists where the app may see them"],
  [86001, "check the chat's id; the app must have made the chat"],
  [93000, 'the robot is gone, or its key is wrong: check "webhook_url"'],
  [93006, "check the chat's id; the bot must be in the chat"],
  [301002, "the app may not write there"],
]);

/** What is not in the tables is refused for good: WeCom names what passes by few codes, what is wrong by hundreds. */
export function fateOf(code: number): Fate {
  if (tooOften.has(code)) return { as: "later", waitMs: tooOftenMs };
  if (passing.has(code)) return { as: "later" };
  const known = advice.get(code);
  return known === undefined ? { as: "refused" } : { as: "refused", advice: known };
}
