"""unittest's main for a file that ctest runs: what was skipped is said at the end, and a file of which nothing could run ends with
a code of its own, so that ctest counts it as skipped and not as passed."""

import collections
import sys
import unittest

ALL_SKIPPED = 77  # SKIP_RETURN_CODE in tutti_python_test (cmake/TuttiRoom.cmake)


class Counting(unittest.TextTestResult):
    """Counts what ran to its end. A test of which one part was skipped is no success to unittest; its other parts are."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.passed += err is None


def main(argv=None, verbosity=1):
    """Does not return."""
    runner = unittest.TextTestRunner(verbosity=verbosity, resultclass=Counting)
    result = unittest.main(argv=argv, testRunner=runner, verbosity=verbosity, exit=False).result
    reasons = collections.Counter(reason for _, reason in result.skipped)
    for reason, count in reasons.items():
        print(f"skipped {count}: {reason}", file=sys.stderr)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(ALL_SKIPPED if reasons and not result.passed else 0)
