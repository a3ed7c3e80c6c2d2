// What the editor asks about a text, and the catalog it registers it in. Offsets are UTF-16, as in JavaScript.
import { get, Problem, type Schemas, send } from "./client";

export type Checked = Schemas["TextChecked"];
export type Diagnosed = Schemas["LocatedDiagnostic"];
export type TextSymbol = Schemas["Symbol"];
export type TextEdit = Schemas["TextEdit"];
export type Stored = Schemas["CatalogVersion"];
export type Trial = Schemas["Trial"];
export type TrialAsked = Partial<Schemas["TrialAsked"]> & { content: string };

const ask = <T>(feature: string, body: unknown): Promise<T> => send<T>("POST", `/api/language/${feature}`, body);

export const language = {
  check: (content: string) => ask<Checked>("check", { content }),
  complete: (content: string, offset: number) => ask<Schemas["CompletionList"]>("complete", { content, offset }),
  hover: (content: string, offset: number) => ask<Schemas["Hovered"]>("hover", { content, offset }),
  definition: (content: string, offset: number) => ask<Schemas["Definitions"]>("definition", { content, offset }),
  rename: (content: string, offset: number, name?: string) => ask<Schemas["Renamed"]>("rename", { content, offset, name }),
  format: (content: string) => ask<Schemas["Formatted"]>("format", { content }),
};

/** The text of a version, the latest by default; nothing if the catalog has none. */
export async function stored(path: string, version?: number): Promise<Stored | null> {
  try {
    const found = await get<Stored>("/api/catalog/playbook", { path, version });
    return { ...found, content: (found.content ?? "").replace(/\r\n?/g, "\n") };
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}

/** Refused with 409 if the catalog has another version than the one that was seen; 0 is none. */
export const register = (content: string, path: string, expected: number) => send<Schemas["Registered"]>("POST", "/api/catalog", { content, path, expected });
export const attempt = (body: TrialAsked, key = "") => send<Trial>("POST", "/api/try", body, key ? { "Idempotency-Key": key } : {});
export const recentOf = (path: string) => get<Schemas["Executions"]>("/api/executions", { path, limit: 5 });
