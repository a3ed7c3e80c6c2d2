"""Rewrite a playbook of an older dialect in today's form, with its comments."""

from noetl.dsl.upgrade.convert import Upgrade, upgrade

__all__ = ["Upgrade", "upgrade"]
