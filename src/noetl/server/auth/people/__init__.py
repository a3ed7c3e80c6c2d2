"""Users: passwords, sessions, and sign-in with OpenID Connect."""
