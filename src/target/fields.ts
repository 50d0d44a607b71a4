import type { AddressField, Setting } from "./target.ts";

/** Address field of targets that translate Markdown: how one route's texts are to be read. */
export const format: AddressField = {
  help: '"plain" when the text is no Markdown and is to be shown as it is; "markdown" when not set',
  pattern: /plain|markdown/,
};

/** The setting `home_channel`. */
export function homeChannel(env: string, what: string): Setting {
  return { kind: "string", help: `${what} that messages go to when a route names none`, env: [env] };
}

/** The setting `base_url`. */
export function baseUrl(name: string, help: string, preset: string | undefined, alternatives?: string[]): Setting {
  return {
    ...{ kind: "url", help, env: [`${name}_BASE_URL`] },
    ...(preset === undefined ? { required: true } : { default: preset }),
    ...(alternatives === undefined ? {} : { alternatives }),
  };
}
