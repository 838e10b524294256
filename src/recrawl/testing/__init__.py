"""For tests of programs that use recrawl: contract checks for policies, and a web on this machine.

    from recrawl.testing import GeneratedWeb, check_policy

    def test_my_policy():
        check_policy(MyPolicy(alpha=0.2))

    with GeneratedWeb(sites=1, pages=30) as web, recrawl.init("copy", clock=web.now) as repo:
        repo.add(*web.urls, allow_private=True, delay=0)
        repo.crawl()
        web.advance(days=1)
        repo.cycle(budget=10)

`check_policy` drives a policy over random books, which hold whatever it may need, and raises `PolicyError` with the
violated rule; `RULES` lists the rules. All policies of recrawl pass. `GeneratedWeb` serves generated sites over HTTP on
loopback, at a time that the test sets.

policies.py       check_policy and RULES
books.py          random books and worlds
io_watch.py       notes the input and output of a policy
generated_web.py  GeneratedWeb
simulate.py       the whole crawler in a simulator: `simulate(seed)`
"""

from recrawl.testing.generated_web import GeneratedWeb
from recrawl.testing.policies import RULES, check_policy

__all__ = ["RULES", "GeneratedWeb", "check_policy"]
