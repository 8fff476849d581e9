"""The type checker of the tests: beartype, with an int accepted where a float is asked for, as in Python itself."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
