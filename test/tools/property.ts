import fc from "fast-check";

// At a desk every run tries other values and says its seed when it finds something. Under CI the values are always the
// same: a change must not fail there for what it did not touch.
if (process.env.CI === "true") fc.configureGlobal({ seed: 20_261_121 });

export { fc };
