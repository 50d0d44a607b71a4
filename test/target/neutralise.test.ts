import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { breakEmbeds } from "../../src/target/embeds.ts";
import {
  breakMentions,
  neutraliseGitlab,
  neutraliseMarkdown,
  oneLine,
  plainText,
} from "../../src/target/neutralise.ts";
import { hostileTexts } from "../vectors/hostile-texts.ts";

const shown = (text: string) => text.replaceAll("\u200b", "∅");

describe("neutraliseMarkdown", () => {
  const broken: [what: string, text: string, harmless: string][] = [
    ["a user", "thanks @octocat!", "thanks @∅octocat!"],
    ["a team", "@org/everyone look", "@∅org/everyone look"],
    ["many", "@a @b,@c", "@∅a @∅b,@∅c"],
    ["a mention in emphasis", "_@user_ **@user**", "_@∅user_ **@∅user**"],
    ["an escaped one, which Markdown shows all the same", "\\@user", "\\@∅user"],
    [
      "one written as entities",
      "&#64;user &#x40;user &commat;user @&#117;ser",
      "&#64;∅user &#x40;∅user &commat;∅user @∅&#117;ser",
    ],
    ["one that a control character splits", "@\u0000us\u0007er", "@∅user"],
    ["one behind a letter that GitHub does not count", "é@user", "é@∅user"],
    ["a bot wherever it stands", "x@dependabot merge", "x@∅dependabot merge"],
    ["a bot in code", "```\n@dependabot merge\n```\n`@claude fix`", "```\n@∅dependabot merge\n```\n`@∅claude fix`"],
    ["a slash command", "/merge\n  /retest all\n/ok-to-test", "/∅merge\n  /∅retest all\n/∅ok-to-test"],
    ["a quoted or listed command", "> /close\n- /approve\n> > /lgtm", "> /∅close\n- /∅approve\n> > /∅lgtm"],
    ["a command after CR alone", "a\r/merge", "a\n/∅merge"],
    ["a command in a fence, because bots read the raw text", "```\n/retest\n```", "```\n/∅retest\n```"],
    ["a command in words", "bors r+\nDuplicate of #1", "bors∅ r+\nDuplicate of∅ #1"],
  ];
  for (const [what, text, harmless] of broken) {
    test(`breaks ${what}`, () => assert.equal(shown(neutraliseMarkdown(text)), harmless));
  }

  const spared: [what: string, text: string][] = [
    ["an e-mail address", "write to a.b@example.com"],
    ["a path", "/usr/bin/env is not /etc/passwd\nsee `/tmp`"],
    ["a division", "either/or 1/2"],
    ["a fence", "Look:\n```java\n@Override\nvoid f() {}\n```\nDone"],
    ["a fence of tildes with backticks in it", "~~~\n```\n@Inject\n~~~"],
    ["a fence that is never closed", "```\n@Inject"],
    ["a span", "use `@Inject` and ``a `@b` c``"],
    ["code after known tags", "<details>\n<summary>Log</summary>\n\n```\n@Inject\n```\n\n</details>\n\n`@Inject`"],
    ["code after a tag that is itself code", "`Vec<String>` and `@Inject`\n\n```\n@Inject\n```"],
  ];
  for (const [what, text] of spared) {
    test(`leaves ${what} alone`, () => assert.equal(neutraliseMarkdown(text), text));
  }

  // In each of these the mention is live on GitHub, although a hasty reader would take it for code.
  const traps: [what: string, text: string][] = [
    ["a span opened on the line before", "text ` here\n`@user` there"],
    ["an escaped backtick", "\\`@user`"],
    ["a table that cuts a span", "| `a | @user` |\n|-|-|"],
    ["a backtick within a tag", '<a href="`">`@user`</a>'],
    ["a fence within an HTML block", "<div>\n```\n@user\n```"],
    ["a fence within a comment", "<!--\n```\n-->\n@user"],
    ["a fence of a list that ends with the list", "- a\n  ```\n@user"],
    ["the closing fence of a list", "- ```\n  ```\n@user"],
    ["an info text with a backtick", "``` a`b\n@user"],
    ["too short a closing fence, then live text after the real one", "````\n```\n````\n@user"],
    ["a tag that drops the tags within", "<select>\n\n```\n@user\n```"],
    ["a blank line that is none", "<div>\n\u00a0\n```\n@user"],
    ["tilde and backtick mixed", "~~~\n```\n~~~\n@user"],
  ];
  for (const [what, text] of traps) {
    test(`is not fooled by ${what}`, () => assert.doesNotMatch(neutraliseMarkdown(text), /@user/));
  }

  test("takes nothing for code when it is told so", () => {
    assert.equal(shown(neutraliseMarkdown("`@a`\n```\n@b\n```", { spareCode: false })), "`@∅a`\n```\n@∅b\n```");
  });

  test("is harmless the second time too: nothing is broken twice", () => {
    for (const [, text, harmless] of broken)
      assert.equal(shown(neutraliseMarkdown(neutraliseMarkdown(text))), harmless);
  });

  test("takes a megabyte of anything in little time", () => {
    for (const piece of [
      "@",
      "@a",
      "`",
      "` ",
      "``` \n",
      "~~~\n",
      "\n",
      " ",
      "/a",
      "\n/a",
      "&#0",
      "<",
      "<a ",
      "> ",
      "- ",
      "a",
    ]) {
      const started = performance.now();
      neutraliseMarkdown(piece.repeat(1_000_000 / piece.length));
      assert.ok(performance.now() - started < 10_000, JSON.stringify(piece));
    }
  });
});

describe("neutraliseGitlab", () => {
  const broken: [what: string, text: string, harmless: string][] = [
    ["a quick action", "/close\n  /merge now\n/LABEL ~bug", "/∅close\n  /∅merge now\n/∅LABEL ~bug"],
    ["one in a list or a quotation", "- /approve\n> /assign", "- /∅approve\n> /∅assign"],
    ["one in a fence, which GitLab may not take for one", "```\n/close\n```", "```\n/∅close\n```"],
    ["a user, a group and everybody", "@user @group/sub @all", "@∅user @∅group/sub @∅all"],
    ["names that only GitLab has", "@_user @.group", "@∅_user @∅.group"],
    ["a bot in code", "`@dependabot merge`", "`@∅dependabot merge`"],
    ["a user in a fence that a quotation ends", ">>>\n```\n>>>\n@user\n```", ">>>\n```\n>>>\n@∅user\n```"],
    ["a user in a fence that front matter opens", "---\n```\n---\n@user\n```", "---\n```\n---\n@∅user\n```"],
  ];
  for (const [what, text, harmless] of broken) {
    test(`breaks ${what}`, () => {
      assert.equal(shown(neutraliseGitlab(text)), harmless);
      assert.equal(shown(neutraliseGitlab(neutraliseGitlab(text))), harmless);
    });
  }

  test("leaves paths, addresses and code alone", () => {
    const text = "see /usr/bin/env or a.b@example.com, ~label %milestone !12 #3\n```java\n@Override\n```\n`@Inject`";
    assert.equal(neutraliseGitlab(text), text);
  });

  test("takes nothing for code when it is told so", () => {
    assert.equal(shown(neutraliseGitlab("`@a`", { spareCode: false })), "`@∅a`");
  });
});

describe("breakMentions", () => {
  const cases: [text: string, mass: string, all: string][] = [
    [
      "@all @Channel (@here) x@everyone",
      "@∅all @∅Channel (@∅here) x@∅everyone",
      "@∅all @∅Channel (@∅here) x@∅everyone",
    ],
    ["@alice _@bob_ @é @_x", "@alice _@bob_ @é @_x", "@∅alice _@∅bob_ @∅é @∅_x"],
    ["\uff20all \ufe6bhere", "\uff20∅all \ufe6b∅here", "\uff20∅all \ufe6b∅here"],
    ["&#64;all &#x40;bob &commat;here", "&#64;∅all &#x40;bob &commat;∅here", "&#64;∅all &#x40;∅bob &commat;∅here"],
    ["@所有人 @全体成员", "@∅所有人 @∅全体成员", "@∅所有人 @∅全体成员"],
    ["me@all.example a@b.c @ 5", "me@all.example a@b.c @ 5", "me@all.example a@b.c @ 5"],
  ];
  for (const [text, mass, all] of cases) {
    test(`parts the @ from the name: ${text}`, () => {
      assert.equal(shown(breakMentions(text, "mass")), mass);
      assert.equal(shown(breakMentions(text, "all")), all);
      assert.equal(breakMentions(breakMentions(text, "all"), "all"), breakMentions(text, "all"));
    });
  }

  test("takes a megabyte of anything in little time", () => {
    for (const piece of ["@", "@a", "a@", "a.b@all.", "&#0", "\uff20", "@al", "a"]) {
      const started = performance.now();
      breakMentions(piece.repeat(1_000_000 / piece.length), "all");
      assert.ok(performance.now() - started < 10_000, JSON.stringify(piece));
    }
  });
});

describe("hostile texts", () => {
  const ways: [target: string, neutralise: (text: string) => string][] = [
    ["github_comment", (text) => breakEmbeds(neutraliseMarkdown(text))],
    ["gitlab_note", (text) => breakEmbeds(neutraliseGitlab(text), { isGitlab: true })],
    ["mattermost", (text) => breakMentions(plainText(text), "mass")],
  ];
  for (const [target, neutralise] of ways) {
    test(`have no power on ${target}`, () => {
      // What is secret is blotted out before a target gets it, and links are what markup makes of them.
      for (const { name, text, live, on } of hostileTexts) {
        if (on === undefined ? /secret|link|address|tracker/.test(name) : !on.includes(target)) continue;
        for (const pattern of live) assert.doesNotMatch(neutralise(text), pattern, name);
      }
    });
  }

  test("would have power if nothing were done", () => {
    for (const { name, text, live } of hostileTexts) {
      if (/that lies|runs code|tracker|Telegram|parts|address that breaks|link's text/.test(name)) continue;
      for (const pattern of live) assert.match(text, pattern, name);
    }
  });
});

describe("plainText", () => {
  test("keeps what people write", () => {
    const text = "Zürich 東京 مرحبا שלום 👩‍👩‍👧‍👦\tcolumn\nnext line\u00a0end";
    assert.equal(plainText(text), text);
  });
  test("drops tag characters but in a flag, and the mark of a file's start", () => {
    const hidden = "\u{e0068}\u{e0069}";
    const england = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
    assert.equal(plainText(`\ufeffa${hidden}b${england}${hidden}🏴${hidden}\u{e007f}\u{e0001}`), `ab${england}🏴`);
  });
  test("keeps what parts a mention from its name", () => {
    assert.equal(plainText("@\u200ball a\u200cb\u200dc\u200ed\u2060"), "@\u200ball a\u200cb\u200dc\u200ed\u2060");
  });
  test("drops control characters and overrides of direction, mends lone surrogates and line ends", () => {
    assert.equal(plainText("a\0b\u001b[31mc\u0085\u202ed\u2066e\ud800\r\nf\rg"), "ab[31mcde\ufffd\nf\ng");
  });
});

test("oneLine folds line ends of every kind into a space", () => {
  assert.equal(oneLine(" a\r\nBcc: x@y.z\u2028b\u0085c\t\0d "), "a Bcc: x@y.z b c d");
});

test("line ends that are none to Markdown cost no more than others", () => {
  const text = "\u2028".repeat(40_000);
  const started = performance.now();
  neutraliseMarkdown(text);
  neutraliseGitlab(text);
  // In proportion to the text it is a few milliseconds, with its square more than 15 seconds.
  assert.ok(performance.now() - started < 3_000);
});
