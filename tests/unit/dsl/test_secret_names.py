"""Which names hide their values: the table of docs/explanation/secrets.md."""

from __future__ import annotations

import pytest

from noetl.dsl.secret_names import HiddenNames

HIDDEN = """
    password db_password dbPassword DB-PASSWORD dbpassword passwd pwd user_pwd passphrase password2 password_hash
    secret client_secret clientSecret secrets secret_value
    token access_token accessToken refresh-token x-amz-security-token jwt id_token
    key api_key apiKey apikey X-API-Key private_key privateKey secret_access_key encryption_key ssh_key
    auth basic_auth authorization Authorization Proxy-Authorization authorization_header bearer
    credential credentials cookie cookies Set-Cookie session session_id sessionId user_session workload.password
"""
SHOWN = """
    keyboard monkey keys primary_key primaryKey foreign_key partition_key sort_key object_key idempotency_key public_key
    primary_key_count key_name key_id tokens token_count tokenCount max_token token_type token_url total_tokens
    next_token nextPageToken page_token continuation_token cursor_token csrf_token
    password_policy passwordless secretary secret_name author authority auth_url authenticated session_count sessions
    cookie_policy credential_name passing username name value id "" 1 _ # workload
"""


@pytest.mark.parametrize("name", HIDDEN.split())
def test_a_name_that_ends_in_the_word_for_a_secret_is_hidden(name: str) -> None:
    assert HiddenNames().hides(name)


@pytest.mark.parametrize("name", SHOWN.split())
def test_a_name_that_only_contains_such_a_word_is_shown(name: str) -> None:
    assert not HiddenNames().hides(name)


def test_further_names_hide_names_that_end_in_their_words() -> None:
    names = HiddenNames(["iban", "social-security"])
    found = [
        one
        for one in ("iban", "customer_iban", "customerIban", "ibans", "socialSecurity", "security")
        if names.hides(one)
    ]
    assert found == ["iban", "customer_iban", "customerIban", "socialSecurity"]
