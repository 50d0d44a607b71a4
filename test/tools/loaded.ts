import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";

// Run before a program by --import: writes down the packages, and the parts of Node, that it loads itself, by import or by
// require, one a line. Threads with an environment of their own are left alone.

const file = process.env.LOADED_PACKAGES;

registerHooks({
  load(url, context, next) {
    const [, inside] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(url) ?? [];
    const name = inside ?? (url.startsWith("node:") ? url : undefined);
    if (file !== undefined && name !== undefined) appendFileSync(file, `${name}\n`);
    return next(url, context);
  },
});
