// Who is signed in, and what that role may do. The server decides; the UI only mirrors it.
import { useQuery } from "@tanstack/react-query";
import { get, type Schemas, setCsrf } from "./client";

export type Me = Schemas["Me"];
export type Role = "viewer" | "operator" | "editor" | "admin";
const ORDER: Role[] = ["viewer", "operator", "editor", "admin"];

export async function fetchMe(): Promise<Me> {
  const me = await get<Me>("/api/me");
  setCsrf(me.csrf ?? "");
  return me;
}

export const useMe = () => useQuery({ queryKey: ["me"], queryFn: fetchMe, staleTime: 60_000, retry: false });

export function mayBe(me: Me | undefined, role: Role): boolean {
  const roles = me ? [me.role, ...me.grants.map((one) => one.role)] : [];
  return roles.some((one) => ORDER.indexOf(one as Role) >= ORDER.indexOf(role));
}

/** Why an action is disabled for the caller, or nothing. */
export function useNeeds(): (role: Role) => string | undefined {
  const { data } = useMe();
  return (role) => (mayBe(data, role) ? undefined : `needs ${role}`);
}

/** A redirect means that the server has a provider; without one the route is not there. */
export async function hasProvider(): Promise<boolean> {
  const answer = await fetch("/api/session/oidc", { redirect: "manual" });
  return answer.type === "opaqueredirect";
}
