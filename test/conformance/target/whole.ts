import assert from "node:assert/strict";
import { test } from "node:test";
import { handle } from "../../../src/gateway/pipeline.ts";
import { request, setScene } from "../../tools/scene.ts";
import type { TargetCase } from "./case.ts";

/** The way of a direct delivery through the gateway: from `config.yaml` and a signed request to the service. */
export function testWhole(one: TargetCase): void {
  const { name, isPlatform } = one.create({});

  test("delivers directly, set up by the configuration file alone", async (t) => {
    const service = await one.start();
    t.after(() => service.fake.close());
    const section = { ...(isPlatform ? { enabled: true } : {}), ...service.settings };
    const route = { prompt: "Build {what}", deliver: name, deliver_extra: one.extra, deliver_only: true };
    const { gateway } = await setScene(t, {
      routes: { ci: route },
      platforms: { [name]: section },
      env: service.env ?? {},
    });
    const { reply } = await handle(request({ body: { what: "7" }, id: "first" }), gateway);
    assert.deepEqual(reply, { status: "delivered", route: "ci", target: name, delivery_id: "first" });
    assert.deepEqual(
      service.fake.messages.map(({ text }) => text.trim()),
      ["Build 7"],
    );
    assert.deepEqual(service.fake.mismatches ?? [], []);
  });
}
