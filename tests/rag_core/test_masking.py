"""What looks like a secret, or was given as one, is not shown; ordinary words are."""

from __future__ import annotations

import json

import pytest

from rag_core.masking import is_secret_name, mask, masked_options, masked_words


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
        ("--token=-hush1 --key '-hush1 x' --x", "--token=*** --key '***' --x"),
        (
            "--apikey=hush1 --secretAccessKey hush1 --pwd=hush1",
            "--apikey=*** --secretAccessKey *** --pwd=***",
        ),
        (
            "env AWS_SECRET_ACCESS_KEY=hush1 labels=token=hush1",
            "env AWS_SECRET_ACCESS_KEY=*** labels=token=***",
        ),
        ('{"password": "a\\"hush1", "b": "c"}', '{"password": "***", "b": "c"}'),
        ("client_secret: hush1", "client_secret: ***"),
        ("s3://AKIA:a/hush1@b/x and s3://u:p@hush1@b/x", "s3://***@b/x and s3://***@b/x"),
        ("s3://b/x?AWSAccessKeyId=hush1&x=1", "s3://b/x?AWSAccessKeyId=***&x=1"),
        ("http://localhost:8080/a@b gs://b/x:y@z", "http://localhost:8080/a@b gs://b/x:y@z"),
        ("token 5 of 9, key: value, 12 tokens", "token 5 of 9, key: value, 12 tokens"),
        ("--keep-lists --output a/b", "--keep-lists --output a/b"),
    ],
)
def test_by_the_name_before_it(text, shown):
    assert mask(text) == shown and "hush1" not in mask(text)


def test_secret_names():
    secret = ["apikey", "AWSAccessKeyId", "x-goog-signature", "clientSecret", "auth", "PASSWD", "privateKey"]
    secret += ["s3_secret_access_key", "s3_access_key_id", "s3_session_token", "password", "credentials"]
    assert [name for name in secret if not is_secret_name(name)] == []
    plain = ["max_tokens", "dataflow_kms_key", "output", "passages", "worker_machine_type", "monkey_business"]
    plain += ["no_author", "turkey", "keep-lists", "signal", "compass", "kind"]
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


def test_a_command_line_is_masked_word_by_word():
    """A word may hold blanks and quotes; what stands in it is known from then on, in whatever quoting."""
    words = [
        "--s3_secret_acess_key=-Qa'quiet one",
        "--password",
        "Qb quiet\\two",
        "--x",
        "s3://id:Qc/quiet@b/x",
    ]
    shown = masked_words(words)
    assert shown == ["--s3_secret_acess_key=***", "--password", "***", "--x", "s3://***@b/x"]
    told = f"refused: {words[0][22:]!r}, {json.dumps(words[2])}, Qc%2Fquiet, Qc/quiet"
    assert mask(told) == 'refused: "***", "***", ***, ***'
