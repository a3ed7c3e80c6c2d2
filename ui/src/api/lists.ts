// Lists in cursor pages, read again on focus and every few seconds while they are seen.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "./client";

type Page = Record<string, unknown> & { next?: string | number | null };
const MOST_PAGES = 20;

/** Rows of `field` in the answers of `path`; `more` loads the next page. */
export function useList<T>(path: string, field: string, query: Record<string, unknown> = {}, { every = 10_000, enabled = true }: { every?: number; enabled?: boolean } = {}) {
  const pages = useInfiniteQuery({
    queryKey: ["list", path, query],
    initialPageParam: "" as string | number,
    queryFn: ({ pageParam, signal }) => get<Page>(path, { ...query, cursor: pageParam }, signal),
    getNextPageParam: (last: Page) => last.next ?? undefined,
    maxPages: MOST_PAGES,
    enabled,
    // Rows further down stay as they were read: cost follows the screen.
    refetchInterval: (found) => ((found.state.data?.pages.length ?? 0) > 1 ? false : every),
  });
  const rows = useMemo(() => (pages.data?.pages ?? []).flatMap((page) => (page[field] ?? []) as T[]), [pages.data, field]);
  const more = pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined;
  return { rows, more, isPending: pages.isPending, error: pages.error, again: () => void pages.refetch(), pages: pages.data?.pages ?? [] };
}
