// Reads a JSON list of texts, and writes how JavaScript's URL parsers serialise each: null where it is no URL.
// Node's own is always asked (it is Ada); whatwg-url, the reference implementation of the standard, if NODE_PATH has it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const parsers = { node: URL };
try {
  parsers["whatwg-url"] = createRequire(import.meta.url)("whatwg-url").URL;
} catch (error) {
  if (error.code !== "MODULE_NOT_FOUND") throw error;
}

function serialised(Parser, text) {
  try {
    return new Parser(text).href;
  } catch {
    return null;
  }
}

const texts = JSON.parse(readFileSync(0, "utf8"));
const answers = Object.entries(parsers).map(([name, Parser]) => [name, texts.map((text) => serialised(Parser, text))]);
process.stdout.write(JSON.stringify(Object.fromEntries(answers)));
