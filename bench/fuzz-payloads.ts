import type { Random } from "./fuzz-random.ts";

const nested = (open: string, close: string, inside: string, levels: number) =>
  open.repeat(levels) + inside + close.repeat(levels);

const oddNumbers = [
  ...["1e400", "-1e400", "-0", "1e-400", "99999999999999999999", "0.1e+5", "1.0", "9007199254740993", "1E5"],
  ...["01", "1.", ".5", "+1", "NaN", "Infinity", "0x10", "1_000", "1e", "--1", "1e1e1", `1${"0".repeat(5000)}`],
  ...[`0.${"0".repeat(5000)}1`, `1e${"9".repeat(400)}`],
];

const protoNames = [
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "toJSON", "then", "length"],
  ...["rawJSON", "__defineGetter__", "__lookupSetter__", "isPrototypeOf", "0", "-1", "", " ", "a.b", "__raw__"],
];

const fields = ["title", "user", "list", "a", "action", "labels", "draft", "number", "payload", "event_type", "type"];

const templateTexts = [
  "{__raw__} {user.login} $& $1 {constructor} {title}",
  "{".repeat(5000),
  "{{{title}}} %s $(id) `id` <%= x %> {% raw %}",
  "}{".repeat(2000),
];

/** A JSON value of any kind, small. */
function value(random: Random, depth = 0): string {
  const kind = random.below(depth > 3 ? 6 : 8);
  if (kind === 0) return random.pick(["null", "true", "false"]);
  if (kind === 1) return String(random.below(1_000_000) - 500_000);
  if (kind === 2) return random.pick(oddNumbers.slice(0, 9));
  if (kind < 6) return JSON.stringify(word(random));
  const items = Array.from({ length: random.below(4) }, () => value(random, depth + 1));
  if (kind === 6) return `[${items.join(",")}]`;
  return `{${items.map((item) => `${JSON.stringify(random.pick([...fields, ...protoNames]))}:${item}`).join(",")}}`;
}

function word(random: Random): string {
  return random.pick([
    ...[
      "",
      "opened",
      "fix: a bug",
      "feat(core): x",
      "urgent",
      "ada",
      "ping",
      "\0",
      "\n\r\t",
      "🦊",
      "a\u0301".repeat(50),
    ],
    ...[
      "\u202e\u2066",
      "\ud800",
      "\udc00x",
      "[SILENT]",
      "SKIP",
      "@everyone",
      "<script>",
      "../../etc/passwd",
      ...templateTexts,
    ],
  ]);
}

/** Text that looks like an event, with fields of the wrong kinds. */
function confused(random: Random): string {
  const chosen = fields.filter(() => random.percent(60));
  return `{${chosen.map((field) => `"${field}":${value(random)}`).join(",")}}`;
}

function mutated(random: Random): Buffer {
  const bytes = Buffer.from(
    '{"action":"opened","title":"fix: a bug","user":{"login":"ada"},"list":[{"x":1.50}],"n":1e3}',
  );
  for (let turn = 0; turn <= random.below(6); turn += 1) bytes[random.below(bytes.length)] = random.below(256);
  return random.percent(30) ? bytes.subarray(0, random.below(bytes.length)) : bytes;
}

const makers: readonly ((random: Random) => string | Buffer)[] = [
  confused,
  confused,
  value,
  mutated,
  mutated,
  (random) => nested("[", "]", "1", random.pick([400, 499, 500, 501, 5000, 30_000])),
  (random) => nested('{"a":', "}", "1", random.pick([400, 499, 500, 501, 5000])),
  (random) => `{"a":${"[".repeat(random.below(20_000))}`,
  (random) => `{"title":"x","list":${nested("[", "]", "1", 490)},"number":${random.pick(oddNumbers)}}`,
  (random) => `{"number":${random.pick(oddNumbers)},"n":[${random.pick(oddNumbers)}]}`,
  (random) => `{${protoNames.map((name) => `${JSON.stringify(name)}:${value(random)}`).join(",")}}`,
  (random) =>
    `{"__proto__":{"action":"opened","pass":true,"isAdmin":true},"constructor":{"prototype":${value(random)}}}`,
  (random) =>
    `{"action":"closed","action":"opened","title":1,"title":${value(random)},"event_type":1,"event_type":"x"}`,
  (random) =>
    `{"title":"${random.pick(["\\ud800", "\\udfff\\ud800", "\\uD83E\\uDD8A\\ud83e", "\\u0000", "\\x41", "\\u12"])}"}`,
  (random) => Buffer.concat([Buffer.from('{"title":"'), random.bytes(random.below(200)), Buffer.from('"}')]),
  () => Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
  (random) => `{"title":"${"x".repeat(random.below(40_000))}!"}`,
  (random) => `{"title":"${random.pick(["🦊", "\u00e9", "é", "a"]).repeat(random.below(5000))}","labels":["urgent"]}`,
  (random) => `{${Array.from({ length: random.below(4000) }, (_, index) => `"k${index}":${index}`).join(",")}}`,
  (random) => `\ufeff${random.percent(50) ? "\ufeff" : ""}{"title":1}`,
  () => Buffer.from("\ufeff{}", "utf16le"),
  (random) => `{"title":1}${random.pick(["x", "{}", "\0", ",", "]", "//", "\n\n\u00a0", '"'])}`,
  (random) =>
    random.pick(["", " ", "null", "true", "[]", '"x"', "1", "{}", "{", "}", "{'a':1}", "{a:1}", '{"a":1,}', "\0"]),
  (random) => random.bytes(random.below(300)),
  (random) => `{"event_type":${JSON.stringify(word(random).repeat(20).slice(0, 3000))},"pass":true}`,
  (random) => JSON.stringify({ title: random.pick(templateTexts), user: { login: "{title}" }, list: [{ x: "{a}" }] }),
];

/** A body that a hostile sender might try: JSON and what is nearly JSON. */
export function hostilePayload(random: Random): Buffer {
  const made = random.pick(makers)(random);
  return typeof made === "string" ? Buffer.from(made) : made;
}

/** A form that a hostile sender might try. */
export function hostileForm(random: Random): Buffer {
  const payload = hostilePayload(random);
  const encoded = encodeURIComponent(payload.toString("latin1").slice(0, 2000));
  return Buffer.from(
    random.pick([
      `payload=${encoded}`,
      `payload=${encoded}&payload=${encoded}`,
      "payload=",
      "payload",
      "=&=&=",
      "%",
      "%zz=%ff&a=%00",
      "__proto__=1&constructor=2&__proto__[x]=3",
      "a=1&a=2&a=3&title=fix%3A+x",
      `${"a&".repeat(5000)}`,
      payload.toString("latin1"),
    ]),
    "latin1",
  );
}
