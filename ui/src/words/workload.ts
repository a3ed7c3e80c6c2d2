// The form of a workload: fields from a JSON Schema, drafts as text, values from drafts.

export type Kind = "text" | "long" | "number" | "integer" | "boolean" | "choice" | "json";
export interface FormField {
  name: string;
  kind: Kind;
  about: string;
  required: boolean;
  hasDefault: boolean;
  value: unknown;
  choices: unknown[];
}
type Schema = Record<string, unknown>;
export type Drafts = Record<string, string>;

function kindOf(schema: Schema, value: unknown): Kind {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return "choice";
  const given = Array.isArray(schema.type) ? schema.type : [schema.type];
  const types = given.filter((one) => one !== "null" && typeof one === "string") as string[];
  if (types.length !== 1) return typeof value === "string" ? "text" : typeof value === "number" ? "number" : typeof value === "boolean" ? "boolean" : "json";
  switch (types[0]) {
    case "string":
      return typeof value === "string" && value.includes("\n") ? "long" : "text";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    default:
      return "json";
  }
}

export function fieldsOf(schema: Schema, defaults: Record<string, unknown>): FormField[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
  return Object.entries(properties).map(([name, one]) => {
    const hasDefault = name in defaults || "default" in one;
    const value = name in defaults ? defaults[name] : one.default;
    return {
      name,
      kind: kindOf(one, value),
      about: [one.title === name ? "" : one.title, one.description].filter((text) => typeof text === "string" && text).join(". "),
      required: required.has(name) && (!hasDefault || value === null),
      hasDefault,
      value,
      choices: Array.isArray(one.enum) ? one.enum : [],
    };
  });
}

const LINE = 72;
/** Spell a value on one line if it is short. */
function laidOut(value: unknown): string {
  const line = JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
  return line.length <= LINE ? line.replace(/^([[{]) /, "$1").replace(/ ([\]}])$/, "$1") : JSON.stringify(value, null, 2);
}

export function draftOf(field: FormField, value: unknown): string {
  if (value === undefined || (value === null && field.kind !== "json" && field.kind !== "choice")) return "";
  if (field.kind === "choice") return JSON.stringify(value);
  if ((field.kind === "text" || field.kind === "long") && typeof value === "string") return value;
  return field.kind === "json" ? laidOut(value) : typeof value === "string" ? value : JSON.stringify(value);
}

export const draftsOf = (fields: FormField[], values: Record<string, unknown>): Drafts =>
  Object.fromEntries(fields.map((one) => [one.name, draftOf(one, one.name in values ? values[one.name] : one.value)]));

/** Read a draft; throws what is wrong with it, in words. A template keeps its text. */
export function valueOf(field: FormField, draft: string): unknown {
  if (field.kind === "text" || field.kind === "long") return draft;
  if (draft.trim() === "") return undefined;
  if (field.kind === "integer" || field.kind === "number") {
    const value = Number(draft);
    if (!Number.isFinite(value)) throw new Error("Not a number.");
    if (field.kind === "integer" && !Number.isInteger(value)) throw new Error("Not a whole number.");
    return value;
  }
  try {
    return JSON.parse(draft);
  } catch (error) {
    throw new Error(`Not JSON: ${(error as Error).message}`);
  }
}

export interface Filled {
  payload: Record<string, unknown>;
  problems: Record<string, string>;
}

/** What a form sends: the values that differ from the defaults, so that a later default still counts for the rest. */
export function fill(fields: FormField[], drafts: Drafts): Filled {
  const payload: Filled["payload"] = {};
  const problems: Filled["problems"] = {};
  for (const field of fields) {
    const draft = drafts[field.name] ?? "";
    const isUntouched = draft === draftOf(field, field.value);
    if (isUntouched && field.required) problems[field.name] = "Needed: it has no default.";
    if (isUntouched) continue;
    try {
      const value = valueOf(field, draft);
      if (value !== undefined) payload[field.name] = value;
      else if (field.required) problems[field.name] = "Needed: it has no default.";
    } catch (error) {
      problems[field.name] = (error as Error).message;
    }
  }
  return { payload, problems };
}

/** Read a JSON object that someone types; nothing is an empty one. */
export function parseJson(text: string): { value: Record<string, unknown>; problem: string } {
  if (!text.trim()) return { value: {}, problem: "" };
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { value: value as Record<string, unknown>, problem: "" } : { value: {}, problem: "It must be an object, such as {\"limit\": 10}." };
  } catch (error) {
    return { value: {}, problem: error instanceof Error ? error.message : "no JSON" };
  }
}
