// The only place that fetches. A problem of the API becomes a Problem; changes carry the session's CSRF token.
import { setServerTime } from "../words/format";
import type { components } from "./schema";

export type Schemas = components["schemas"];

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly fix: string,
    readonly where: string,
    readonly body: unknown = null,
  ) {
    super(detail || title);
  }
}

let csrf = "";
export const setCsrf = (token: string): void => {
  csrf = token;
};

const listeners = new Set<() => void>();
/** Call back when the server says that the session has ended. */
export const onSignedOut = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

async function ask(request: Request): Promise<Response> {
  if (request.method !== "GET") request.headers.set("X-CSRF-Token", csrf);
  let answer: Response;
  try {
    answer = await fetch(request);
  } catch {
    throw new Problem(0, "unreachable", "The server does not answer.", "Check that it runs, then try again.", request.url);
  }
  setServerTime(answer.headers.get("date"));
  if (answer.status === 401 && !request.url.endsWith("/api/session")) for (const one of listeners) one();
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer: Response): Promise<Problem> {
  let body: Record<string, unknown> = {};
  try {
    body = (await answer.json()) as Record<string, unknown>;
  } catch {
    // an answer without a body
  }
  const text = (name: string): string => (typeof body[name] === "string" ? (body[name] as string) : "");
  return new Problem(answer.status, text("title") || `HTTP ${answer.status}`, text("detail"), text("fix"), text("where"), body);
}

/** Ask for a route; T is a type of the generated schema. */
export async function get<T>(path: string, query: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  const answer = await ask(new Request(address(path, query), { signal }));
  return (await answer.json()) as T;
}

export async function send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  const init: RequestInit = { method, headers: { "Content-Type": "application/json", ...headers } };
  if (body !== undefined) init.body = JSON.stringify(body);
  const answer = await ask(new Request(address(path, {}), init));
  const text = await answer.text();
  return (text ? JSON.parse(text) : null) as T;
}

export function address(path: string, query: Record<string, unknown>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) params.append(name, String(one));
  }
  const text = params.toString();
  return `${location.origin}${path}${text ? `?${text}` : ""}`;
}

export const newKey = (): string => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
