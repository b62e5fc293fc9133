"""What looks like a secret, or was given as one, is not shown; ordinary words are."""

from __future__ import annotations

import json

import pytest

from rag_core.masking import is_secret_name, mask, masked_options


@pytest.mark.parametrize(
    "text, shown",
    [
        ("--s3_secret_access_key=hush1 --x 3", "--s3_secret_access_key=*** --x 3"),
        ("unknown option: --s3_secret_acess_key=hush1", "unknown option: --s3_secret_acess_key=***"),
        ("--api-key hush1 --next", "--api-key *** --next"),
        ("{'s3_session_token': 'hush1', 'a': 'b'}", "{'s3_session_token': '***', 'a': 'b'}"),
        ('{"api_key": "hush1"}', '{"api_key": "***"}'),
        ("https://user:hush1@host/x?X-Amz-Signature=hush1&y=1", "https://***@host/x?X-Amz-Signature=***&y=1"),
        ("gs://b/o?access_token=hush1: no", "gs://b/o?access_token=*** no"),
        ("Authorization: Bearer hush1hush1", "Authorization: Bearer ***"),
        ("token 5 of 9, key: value, 12 tokens", "token 5 of 9, key: value, 12 tokens"),
        ("--keep-lists --output a/b", "--keep-lists --output a/b"),
    ],
)
def test_by_the_name_before_it(text, shown):
    assert mask(text) == shown and "hush1" not in mask(text)


def test_secret_names():
    secret = ["s3_secret_access_key", "s3_access_key_id", "s3_session_token", "password", "credentials"]
    assert [name for name in secret if not is_secret_name(name)] == []
    plain = ["max_tokens", "dataflow_kms_key", "output", "passages", "worker_machine_type", "monkey_business"]
    assert [name for name in plain if is_secret_name(name)] == []


def test_options_are_masked_and_their_values_are_known_from_then_on():
    options = {"s3_secret_access_key": "Zr9-quiet", "experiments": ["a=b", "--token=Zr8-quiet"], "n": 3}
    options |= {"labels": {"password": "Zr7-quiet"}, "s3_session_token": None, "input": "s3://u:p@b/x"}
    shown = masked_options(options)
    assert shown == {
        "s3_secret_access_key": "***",
        "experiments": ["a=b", "--token=***"],
        "n": 3,
        "labels": {"password": "***"},
        "s3_session_token": None,
        "input": "s3://***@b/x",
    }
    assert "quiet" not in json.dumps(shown)
    assert mask("refused by the store: Zr9-quiet and Zr7-quiet") == "refused by the store: *** and ***"
