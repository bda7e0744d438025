"""Jobs of MPI's launchers over several hosts: the conformance suite, groups, plans and what they send, programs with an MPI of their own."""

import itertools
import os
import re

from on_hosts import ARGUMENTS, MPIS, OnHosts, run_tests


class Conformance(OnHosts):
    def test_every_mpi_two_hosts(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.conform(folder, (2, 2))

    def test_every_mpi_three_uneven_hosts(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.conform(folder, (1, 3, 2))

    def test_one_rank_each(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.conform(folder, (1, 1))

    def test_plans(self):
        for plan in ("hybrid@2/4", "hybrid", "ring/2", "halving_doubling/2", "double_tree/4", "library"):
            with self.subTest(plan):
                self.conform("openmpi", (2, 3), TUTTI_ALL_REDUCE=plan)

    def test_plans_of_every_operation(self):
        self.conform("mpich", (2, 1), TUTTI_REDUCE_SCATTER="ring", TUTTI_ALL_GATHER="direct", TUTTI_BROADCAST="scatter_gather",
                     TUTTI_REDUCE="scatter_gather", TUTTI_ALL_TO_ALL="bruck", TUTTI_GATHER="binomial", TUTTI_SCATTER="binomial")

    def test_choices_by_size(self):
        self.conform("openmpi", (2, 2), TUTTI_ALL_REDUCE="at_once,1Ki:in_slices.ring@1/64Ki,64Ki:hybrid@2/4,1Mi:library")

    def test_collectives_of_the_library(self):
        self.conform("mpich", (2, 1), TUTTI_ALL_REDUCE="library", TUTTI_ALL_GATHER="library", TUTTI_BROADCAST="library",
                     TUTTI_ALL_TO_ALL="library")


# For hundreds of groups: with more ranks than cores, and others at work on the machine, some take many times as long as most.
LONG = {"patience": 400, "TUTTI_TIMEOUT": "150"}


class Gradients(OnHosts):
    """The tests of gradients, whose ranks are those of the job: the first ones of it, as many as a test wants."""

    def test_every_mpi(self):
        for folder in MPIS:
            with self.subTest(folder):
                code, output = self.run_job(self.mpi(folder), (2, 2), [ARGUMENTS.gradients], **LONG)
                self.assertEqual(code, 0, output)
                self.assertIn("[  PASSED  ]", output)

    def test_one_rank_each(self):
        code, output = self.run_job(self.mpi("mpich"), (1, 1, 1), [ARGUMENTS.gradients], **LONG)
        self.assertEqual(code, 0, output)
        self.assertIn("[  PASSED  ]", output)


class Groups(OnHosts):
    """Groups between hosts, beside the world."""

    def is_right(self, folder, ranks, *words, **more):
        code, output = self.run_job(self.mpi(folder), ranks, [ARGUMENTS.across, *words], **more)
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("all sums right"), sum(ranks), output)

    def test_operations_on_many_at_once(self):
        for folder, ranks in itertools.product(MPIS, ((2, 2), (1, 3, 2))):
            with self.subTest(f"{folder}, {ranks}"):
                self.is_right(folder, ranks, "groups")

    def test_one_after_the_other(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.is_right(folder, (2, 2), "passing", "100", **LONG)


class Parts(OnHosts):
    """What is longer than MPI counts goes in parts."""

    def test_short_parts(self):
        for folder, ranks in itertools.product(MPIS, ((1, 1), (2, 1))):
            with self.subTest(f"{folder}, {ranks}"):
                mpi = self.mpi(folder)
                code, output = self.run_job(mpi, ranks, [ARGUMENTS.parts, mpi.name])
                self.assertEqual(code, 0, output)
                self.assertEqual(output.count("all parts right"), sum(ranks), output)

    def test_more_than_an_int_counts(self):
        if not ARGUMENTS.large:
            self.skipTest("takes 5 GB of memory: --large runs it")
        for folder in MPIS:
            with self.subTest(folder):
                code, output = self.run_job(self.mpi(folder), (1, 1), [ARGUMENTS.across, "large"])
                self.assertEqual(code, 0, output)
                self.assertEqual(output.count("all sums right"), 2, output)


class Switches(OnHosts):
    """TUTTI_SWITCHES puts the hosts of a switch next to each other."""

    def test_a_group_over_two_switches(self):
        file = os.path.join(self.cluster.folder, "switches")
        with open(file, "w", encoding="utf-8") as switches:
            switches.write(f"left: {self.cluster.name(0)} {self.cluster.name(2)}\nright: {self.cluster.name(1)}\n")
        for folder, words in itertools.product(MPIS, ("sums", "groups")):
            with self.subTest(f"{folder}, {words}"):
                code, output = self.run_job(self.mpi(folder), (1, 3, 2), [ARGUMENTS.across, words], TUTTI_SWITCHES=file)
                self.assertEqual(code, 0, output)
                self.assertEqual(len(re.findall(r"rank \d: the group is mpi \(.*\) 1\+2\|3\n", output)), 6, output)
                self.assertEqual(output.count("all sums right"), 6, output)


class Choices(OnHosts):
    """By what operations cannot be run between hosts."""

    def is_refused(self, folder, says, **variables):
        code, output = self.run_job(self.mpi(folder), (1, 1), [ARGUMENTS.across, "sums"], **variables)
        self.assertNotEqual(code, 0, output)
        (name, value), = variables.items()
        self.assertIn(f"{name}={value}: {says}", output)

    def test_what_mpi_has_no_collective_for(self):
        for operation in ("reduce", "reduce_scatter", "gather", "scatter"):
            with self.subTest(operation):
                self.is_refused("mpich", "MPI's own collective can be chosen for all_reduce, broadcast, all_gather and all_to_all only: "
                                f"choose a plan for {operation} (", **{f"TUTTI_{operation.upper()}": "library"})

    def test_ways_of_one_host(self):
        for way in ("at_once", "in_slices/64Ki"):
            with self.subTest(way):
                self.is_refused("openmpi", f"between hosts, {way} can be chosen for all_reduce only: choose a plan for broadcast (",
                                TUTTI_BROADCAST=way)


class Traffic(OnHosts):
    """What plans send between hosts is what their formulas say."""

    def sends_as_it_should(self, folder, ranks, *words):
        code, output = self.run_job(self.mpi(folder), ranks, [ARGUMENTS.traffic, *words])
        self.assertEqual(code, 0, output)
        self.assertIn(f" {'+'.join(map(str, ranks))}, blocks of", output)
        self.assertIn("25 plans, 0 send something else than their formula says", output)

    def test_inside_and_between_hosts(self):
        self.sends_as_it_should("openmpi", (2, 2))
        self.sends_as_it_should("mpich", (2, 2, 1))

    def test_the_kernel_counts_as_much(self):
        for folder, ranks in (("openmpi", (1, 1, 1)), ("mpich", (1, 1))):
            with self.subTest(folder):
                self.sends_as_it_should(folder, ranks, "--cable", "cable")


class SlowCable(OnHosts):
    rate = "1gbit"

    def test_long_messages(self):
        code, output = self.run_job(self.mpi("openmpi"), (2, 2), [ARGUMENTS.across, "long"], TUTTI_TIMEOUT="60")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("all sums right"), 4, output)


class Embedded(OnHosts):
    """Programs that bring their own MPI and communicator."""

    def check(self, folder, *words):
        mpi = self.mpi(folder)
        program = os.path.join(ARGUMENTS.embedded, f"embedded_{mpi.name}")
        if not os.path.exists(program):
            self.skipTest(f"no {program}")
        code, output = self.run_job(mpi, (3, 3), [program, *words])
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("of 3, engine mpi"), 3, output)
        return output

    def test_a_communicator_of_the_program(self):
        for folder in MPIS:
            with self.subTest(folder):
                self.check(folder)

    def test_an_mpi_for_one_thread_is_warned_of(self):
        for folder in MPIS:
            with self.subTest(folder):
                output = self.check(folder, "--plain")
                if folder != "openmpi":  # which gives more than was asked for
                    self.assertIn("MPI was initialized for one thread alone", output)


if __name__ == "__main__":
    run_tests()
