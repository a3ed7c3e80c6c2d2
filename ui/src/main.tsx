import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { onSignedOut } from "./api/client";
import { client, router } from "./routes";
import "./styles/tokens.css";
import "./styles/base.css";

onSignedOut(() => {
  if (router.state.location.pathname === "/login") return;
  void router.navigate({ to: "/login", search: { next: router.state.location.href } });
});

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
