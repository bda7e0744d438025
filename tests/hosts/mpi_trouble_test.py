"""Jobs of MPI's launchers over several hosts in which something goes wrong, or nearly."""

import os
import re
import subprocess
import sys
import tempfile
import time

from cluster import Cluster
from on_hosts import ARGUMENTS, MPIS, OnHosts, run_tests

# So that the launcher leaves the others alone when one rank dies.
SURVIVE = {"openmpi": ("--enable-recovery",), "mpich": ("-disable-auto-cleanup",), "intelmpi": ("-disable-auto-cleanup",)}


class Trouble(OnHosts):
    ENDED = re.compile(r"rank (\d+): ended with ([a-z ]+) because of rank (-?\d+): (.*)")
    NUMBERED = re.compile(r"(all_reduce|round_sums) .*#\d+")

    def ends(self, mpi, ranks, words, options=(), code=0):
        """How each rank ended: {rank: (code, rank to blame, sentence)}; and all that was said."""
        for _ in range(3):
            ends, output = self.ends_of_one(mpi, ranks, words, options, code)
            # MPICH 5.0.2 writes through a null pointer of its own when a send to who is dead fails at once, some dozen runs apart.
            if mpi.name != "mpich" or not re.search(r"crashed in (?:\S*/libc\.so\S*\s+)*\S*/libmpi\.so", output):
                break
            print(f"{mpi.name} crashed in {words}, once more", file=sys.stderr)
        return ends, output

    def ends_of_one(self, mpi, ranks, words, options, code):
        with tempfile.TemporaryDirectory() as folder:
            status, output = self.run_job(mpi, ranks, [ARGUMENTS.across, *words], options, ACROSS_HOSTS_OUT=folder)
            if code is not None:
                self.assertEqual(status, code, output)
            # A launcher may be gone before the ranks of a job that failed.
            end = time.monotonic() + 20
            while any(self.cluster.runs(number, "across_hosts") for number in range(3)) and time.monotonic() < end:
                time.sleep(0.1)
            said = ""
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    said += file.read()
        ends = {int(m[1]): (m[2], int(m[3]), m[4]) for m in self.ENDED.finditer(said)}
        return ends, said + output

    def test_a_death_is_named(self):
        for folder in MPIS:
            for word, victim in (("kill", 0), ("kill", 3), ("kill-rounding", 2)):  # who speaks for its host, and who does not
                with self.subTest(f"{folder}, {word} {victim}"):
                    mpi = self.mpi(folder)
                    ends, output = self.ends(mpi, (2, 2), [word, str(victim)], SURVIVE[mpi.name], code=None)
                    expected = [rank for rank in range(4) if rank != victim]
                    if mpi.name == "mpich":
                        # On the dead one's host its launcher asks nobody: when it sees the connection to its PMI end before it has
                        # seen the process end, it kills the others there, whatever it was told.
                        expected = [rank for rank in expected if rank // 2 != victim // 2 or rank in ends]
                    self.assertEqual(sorted(ends), expected, output)
                    for code, blamed, sentence in ends.values():
                        self.assertEqual((code, blamed), ("peer lost", victim), output)
                        self.assertRegex(sentence, self.NUMBERED, output)
                    # The deadline is a minute.
                    waited = [int(each) for each in re.findall(r"rank \d+: heard of it after (\d+) ms", output)]
                    self.assertGreaterEqual(len(waited), len(ends), output)
                    self.assertLess(max(waited), 15_000, output)

    def test_messages_name_who_died(self):
        for folder in MPIS:
            with self.subTest(folder):
                mpi = self.mpi(folder)
                ends, output = self.ends(mpi, (2, 2), ["lost-message", "3"], SURVIVE[mpi.name], code=None)
                self.assertLessEqual({0, 1}, set(ends), output)  # of the others' host; MPICH's launcher may end rank 2
                self.assertNotIn("nothing failed", output)
                said = self.ENDED.findall(output)
                for rank in ("0", "1"):
                    sentences = [(code, blamed, sentence) for who, code, blamed, sentence in said if who == rank]
                    self.assertGreaterEqual(len(sentences), 2, output)  # the one under way, and the next
                    for code, blamed, sentence in sentences:
                        self.assertEqual((code, blamed), ("peer lost", "3"), output)
                        self.assertIn("receive of 40 bytes from rank 3 (tag 5)", sentence)

    def test_a_late_rank_is_named(self):
        for folder in MPIS:
            with self.subTest(folder):
                ends, output = self.ends(self.mpi(folder), (2, 2), ["late", "2"], code=None)  # MPI may end as it likes
                self.assertEqual(sorted(ends), [0, 1, 2, 3], output)
                for code, blamed, sentence in ends.values():
                    self.assertEqual((code, blamed), ("timed out", 2), output)
                    self.assertIn("still missing: rank 2", sentence)

    def test_a_mismatch_breaks_nothing(self):
        for odd in ("1", "2"):
            with self.subTest(odd):
                ends, output = self.ends(self.mpi("openmpi"), (2, 1), ["mismatch", odd])
                self.assertEqual({code for code, _, _ in ends.values()}, {"mismatch"}, output)
                self.assertEqual(len({sentence for _, _, sentence in ends.values()}), 1, output)
                self.assertEqual(len(set(re.findall(r"rank \d+: all sums right", output))), 3, output)

    def test_different_divisors_are_named(self):
        for first in ("1", "2"):  # two of one host differ; hosts do
            with self.subTest(first):
                ends, output = self.ends(self.mpi("openmpi"), (2, 1), ["divisor", first])
                self.assertEqual(sorted(ends), [0, 1, 2], output)
                for line in re.findall(r"rank \d+: ended with.*", output):
                    self.assertRegex(line, f"ended with mismatch because of rank {first}: round_sums .*: "
                                           f"rank 0 divides by 4, and rank {first} by 5")
                self.assertEqual(len(set(re.findall(r"rank \d+: all sums right", output))), 3, output)

    def test_different_choices_are_named(self):
        for first in ("1", "2"):  # two of one host differ; hosts do
            with self.subTest(first):
                ends, output = self.ends(self.mpi("openmpi"), (2, 2), ["choices", first])
                self.assertEqual(sorted(ends), [0, 1, 2, 3], output)
                for line in re.findall(r"rank \d+: ended with.*", output):
                    self.assertRegex(line, f"ended with mismatch because of rank {first}: all_reduce .*: "
                                           f"rank {first} runs it by another plan than rank 0")
                self.assertEqual(len(set(re.findall(r"rank \d+: all sums right", output))), 4, output)

    def test_a_failed_message_is_heard_everywhere(self):
        for folder in MPIS:
            with self.subTest(folder):
                ends, output = self.ends(self.mpi(folder), (2, 2), ["message", "3"], code=None)
                self.assertEqual(sorted(ends), [0, 1, 2, 3], output)
                for code, _, sentence in ends.values():
                    self.assertEqual(code, "mismatch", output)
                    self.assertIn("the message from rank 0 has 40 bytes", sentence)

    LACKS = 'case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) export TUTTI_MPI=/nowhere/plugin.so ;; esac; exec "$0" "$@"'

    def test_a_plugin_that_one_rank_lacks(self):
        """Ranks that meet by MPI alone: that one ends, and the others do not wait for it for ever."""
        for folder in MPIS:
            with self.subTest(folder):
                code, output = self.run_job(self.mpi(folder), (2, 2), ["sh", "-c", self.LACKS, ARGUMENTS.across, "sums"],
                                            attempts=1, TUTTI_TIMEOUT="5")
                self.assertNotEqual(code, 0, output)
                self.assertIn("cannot load MPI: /nowhere/plugin.so", output)
                self.assertNotIn("all sums right", output)

    def test_a_plugin_that_one_rank_lacks_and_a_store(self):
        """Ranks that meet in a store: all hear of it, and go on without MPI."""
        with tempfile.NamedTemporaryFile() as secret:
            secret.write(os.urandom(32))
            secret.flush()
            code, output = self.run_job(self.mpi("mpich"), (2, 2), ["sh", "-c", self.LACKS, ARGUMENTS.across, "no-mpi"],
                                        TUTTI_STORE=f"tcp:{self.cluster.address(0)}:7717", TUTTI_SECRET_FILE=secret.name)
        self.assertEqual(code, 0, output)
        ends = {int(m[1]): (m[2], m[4]) for m in self.ENDED.finditer(output)}
        self.assertEqual(sorted(ends), [0, 1, 2, 3], output)
        for code, sentence in ends.values():
            self.assertEqual(code, "unsupported", output)
            self.assertIn("rank 1: cannot load MPI: /nowhere/plugin.so", sentence)

    def test_an_abort_reaches_all(self):
        ends, output = self.ends(self.mpi("mpich"), (2, 2), ["abort", "3"])
        self.assertEqual(sorted(ends), [0, 1, 2], output)
        for code, blamed, _ in ends.values():
            self.assertEqual((code, blamed), ("aborted", 3), output)

    CUT_DEADLINE = 5  # seconds, which until-broken sets
    ALLOWANCE = 5  # to hear who knows more, and for a machine that is busy

    def test_a_cut_cable_names_who_cannot_be_reached(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.cut_a_cable(self.mpi(folder))

    def cut_a_cable(self, mpi):
        """Ranks end; that MPI's launcher then waits for its other half is its own affair."""
        with Cluster(2) as cluster, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
            variables = {"TUTTI_TIMEOUT": "20", "ACROSS_HOSTS_OUT": folder}
            with subprocess.Popen(mpi.command(cluster, (2, 2), [ARGUMENTS.across, "until-broken"], variables, SURVIVE[mpi.name]),
                                  env=mpi.environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT):
                try:
                    self.await_words(folder, range(4), "going", 30)
                    time.sleep(0.5)
                    cluster.cut(1)
                    # Those beside the launcher, and the store.
                    for said in self.await_words(folder, (0, 1), "ended with", self.CUT_DEADLINE + self.ALLOWANCE):
                        ended = self.ENDED.search(said)
                        self.assertIn(ended[2], ("timed out", "peer lost"), said)
                        self.assertIn(int(ended[3]), (2, 3), said)
                        self.assertRegex(ended[4], self.NUMBERED, said)
                        self.assertRegex(ended[4], r"\brank (2|3)\b", said)
                    # The others cannot reach the store either; whether they hear of that first is a matter of luck.
                    for said in self.await_words(folder, (2, 3), "ended with", 30):
                        self.assertIn(int(self.ENDED.search(said)[3]), (0, 1), said)
                    end = time.monotonic() + 30
                    while cluster.runs(1, "across_hosts") and time.monotonic() < end:
                        time.sleep(0.1)
                    self.assertFalse(cluster.runs(1, "across_hosts"))
                except AssertionError as wrong:
                    output.seek(0)
                    raise AssertionError(f"{wrong}\n{output.read()}") from wrong
                finally:
                    cluster.end_all()

    def await_words(self, folder, ranks, words, seconds):
        """What each of the ranks has said when all have said that."""
        end = time.monotonic() + seconds
        while True:
            said = []
            for rank in ranks:
                try:
                    with open(os.path.join(folder, f"rank-{rank}"), encoding="utf-8") as file:
                        said.append(file.read())
                except FileNotFoundError:
                    said.append("")
            if all(words in each for each in said):
                return said
            self.assertLess(time.monotonic(), end, f"not all of {list(ranks)} said '{words}' within {seconds} s: {said}")
            time.sleep(0.02)

    def test_sums_of_every_kind(self):
        for folder in MPIS:
            with self.subTest(folder):
                code, output = self.run_job(self.mpi(folder), (2, 1, 2), [ARGUMENTS.across, "sums"])
                self.assertEqual(code, 0, output)
                self.assertEqual(output.count("all sums right"), 5, output)

    def test_what_was_sent_arrives_while_its_sender_waits_elsewhere(self):
        """MPI may say that a send is over, and move the rest only when it is called again."""
        code, output = self.run_job(self.mpi("openmpi"), (2, 2), [ARGUMENTS.across, "many"], TUTTI_TIMEOUT="20")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("all sums right"), 4, output)

    def test_hard_sums_are_the_same_everywhere(self):
        for folder, ranks, seed in (("openmpi", (2, 2), 1), ("mpich", (1, 3), 2), ("impi-rt", (3, 1), 3)):
            with self.subTest(f"{folder}, {ranks}"):
                code, output = self.run_job(self.mpi(folder), ranks, [ARGUMENTS.across, "hard-sums", str(seed)])
                self.assertEqual(code, 0, output)
                self.assertEqual(output.count("all sums right"), 4, output)


if __name__ == "__main__":
    run_tests()
