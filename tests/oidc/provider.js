// A real OpenID Connect provider for the tests: any password is right. Prints its address when it listens.
// Argument: JSON of {redirect, groups: {login: [group]}}.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const asked = JSON.parse(process.argv[2]);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "noetl",
        client_secret: "secret-of-noetl",
        redirect_uris: [asked.redirect],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    pkce: { required: () => true },
    conformIdTokenClaims: false,
    scopes: ["openid", "profile", "groups"],
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    findAccount: (_, login) => ({
      accountId: login,
      claims: () => ({ sub: `sub-${login}`, preferred_username: login, groups: asked.groups[login] ?? [] }),
    }),
    cookies: { keys: ["only for tests"] },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
