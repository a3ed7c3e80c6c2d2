import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { send } from "../api/client";
import { fetchMe, hasProvider } from "../api/session";
import { Button, Command, Field, TabList, Trouble } from "../parts/controls";
import css from "./Login.module.css";

export function Login() {
  const { next = "/" } = useSearch({ strict: false }) as { next?: string };
  const [how, setHow] = useState<"token" | "user">("token");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  const provider = useQuery({ queryKey: ["provider"], queryFn: hasProvider, staleTime: Infinity });
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    setError(null);
    try {
      await send("POST", "/api/session", Object.fromEntries(form));
      client.clear();
      await client.fetchQuery({ queryKey: ["me"], queryFn: fetchMe });
      await navigate({ href: next.startsWith("/") && !next.startsWith("//") ? next : "/" });
    } catch (found) {
      setError(found);
    }
    setBusy(false);
  };
  return (
    <main className={css.page}>
      <form className={css.card} onSubmit={(event) => void submit(event)} aria-labelledby="sign-in">
        <img src="/mark.svg" width="40" height="40" alt="" />
        <h1 id="sign-in">Sign in to NoETL</h1>
        <TabList label="How to sign in" value={how} onChange={setHow} tabs={[{ id: "token", label: "Token" }, { id: "user", label: "Name and password" }]} />
        {how === "token" ? (
          <Field label="Token" hint="An operator creates one; on your own machine the server prints a link at its start.">
            <input name="token" type="password" autoComplete="current-password" required autoFocus />
          </Field>
        ) : (
          <>
            <Field label="Name">
              <input name="user" autoComplete="username" required />
            </Field>
            <Field label="Password">
              <input name="password" type="password" autoComplete="current-password" required />
            </Field>
          </>
        )}
        <Button kind="primary" type="submit" disabled={busy}>
          Sign in
        </Button>
        {provider.data ? (
          <a className={css.provider} href="/api/session/oidc">
            Sign in with your organisation
          </a>
        ) : null}
        {error ? <Trouble error={error} /> : null}
        {how === "token" ? <Command text="noetl token create --role operator --name me" /> : null}
      </form>
    </main>
  );
}
