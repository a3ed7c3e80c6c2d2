import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { TableSearch } from "../routes";

/** The search parameters of a table's screen: filter, chosen row, list. */
export function useTable(to: string) {
  const search = useSearch({ strict: false }) as TableSearch;
  const navigate = useNavigate();
  const go = useCallback((change: TableSearch, replace = false) => void navigate({ to, search: (old: TableSearch) => ({ ...old, ...change }), replace } as never), [navigate, to]);
  const setQuery = useCallback((q: string) => go({ q: q || undefined }, true), [go]);
  const choose = useCallback((id: string | undefined) => go({ id }), [go]);
  return { q: search.q ?? "", id: search.id, tab: search.tab, go, setQuery, choose };
}

/** Whether every word of a filter is in one of the texts. */
export function fits(q: string, ...texts: (string | null | undefined)[]): boolean {
  const all = texts.join(" ").toLowerCase();
  return q.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}
