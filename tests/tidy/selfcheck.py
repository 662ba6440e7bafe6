#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tidy tests are able to fail: each gets a small tree with one fault in it, and must name it.

usage: selfcheck.py COMPILER
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import names

HERE = pathlib.Path(__file__).parent
SPDX = "/* SPDX-License-Identifier: MIT */\n"
COMPILER = "cc"

# A tree without fault; each case changes one thing in it.
GOOD = {
    "include/muster/muster.h": SPDX + "#ifndef M_H\n#define M_H\n#ifdef __cplusplus\n"
                                      'extern "C" {\n#endif\nint muster_go(void);\n'
                                      "#ifdef __cplusplus\n}\n#endif\n#endif\n",
    "common/base/a.h": SPDX + "#ifndef A_H\n#define A_H\nint mst_a(void);\n#endif\n",
    "common/base/clock.c": SPDX + "#include <time.h>\nint mst_now(void)\n{\n"
                                  "\treturn clock_gettime(0, 0);\n}\n",
    "common/wire/w.c": SPDX + '#include "common/base/a.h"\n#include <muster/muster.h>\n',
    "server/core/l.h": SPDX + "#ifndef L_H\n#define L_H\nint mst_l(void);\n#endif\n",
    "server/s.c": SPDX + '#include "server/core/l.h"\n/* sprintf(x) in words is fine */\n',
    "client/libmuster.map": "MUSTER_0.1 {\nglobal:\n\tmuster_go;\nlocal:\n\t*;\n};\n",
    ".clang-format": (HERE.parents[1] / ".clang-format").read_text(),
    "deploy/d.sh": '#!/usr/bin/env bash\nset -e\necho "$HOME"\n',
    ".ci/run": "#!/usr/bin/env bash\ntrue\n",
    "tools/t.sh": "#!/usr/bin/env bash\n# SPDX-License-Identifier: MIT\ntrue\n",
    "tests/t.c": SPDX + '#include "server/core/l.h"\n',
}


class Tidy(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in GOOD.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(self, script, *args):
        return subprocess.run([HERE / script, *map(str, args)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    def passes(self, script, *args):
        run = self.call(script, *args)
        self.assertEqual(run.returncode, 0, run.stdout)

    def fails(self, message, script, *args):
        run = self.call(script, *args)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(message, run.stdout)


class Layers(Tidy):
    def check(self, name, text, message):
        self.write(name, SPDX + text)
        self.fails(message, "layers.py", self.root)

    def test_a_good_tree_passes(self):
        self.passes("layers.py", self.root)

    def test_an_empty_tree_fails(self):
        self.fails("nothing to check", "layers.py", self.root / "deploy")

    def test_upward(self):
        self.check("common/wire/w.c", '#include "server/core/l.h"\n', "may not include")

    def test_sideways(self):
        self.check("common/transport/t.c", '#include "server/core/l.h"\n', "may not include")

    def test_upward_in_angle_brackets(self):
        self.check("common/base/b.c", "#  include <server/core/l.h>\n", "may not include")

    def test_upward_within_a_directory(self):
        self.write("server/control/plane.h", SPDX)
        self.check("server/control/job/job.c", '#include "server/control/plane.h"\n',
                   "within its directory) may not include")

    def test_sideways_within_a_directory(self):
        self.write("server/control/members/joining.h", SPDX)
        self.check("server/control/members/workers.c",
                   '#include "server/control/members/joining.h"\n',
                   "within its directory) may not include")

    def test_a_file_without_rank_within_its_directory(self):
        self.write("server/control/job/job.h", SPDX)
        self.check("server/control/strange.c", '#include "server/control/job/job.h"\n',
                   "has no rank within its directory")

    def test_a_path_that_is_not_rooted(self):
        self.check("server/core/x.c", '#include "l.h"\n', "no path from the root")

    def test_a_directory_without_rank(self):
        self.check("common/strange/x.c", "", "has no rank")

    def test_foreign_headers_stay_at_home(self):
        for header in ("infiniband/verbs.h", "rdma/rdma_cma.h", "libconfig.h",
                       "jansson.h", "zlib.h", "cblas.h", "immintrin.h"):
            self.check("server/s.c", f"#include <{header}>\n", f"<{header}> belongs to")

    def test_a_clock_elsewhere(self):
        self.check("server/s.c", "long f(void)\n{\n\treturn clock_gettime (0, 0);\n}\n",
                   "reads a clock")


class Map(Tidy):
    """That the checkout has a good one, tidy.map says."""

    def complains(self, message):
        self.fails(message, "map.py", self.root)

    def test_a_module_without_a_sentence(self):
        self.complains("common/wire/w: does not begin with a comment")
        self.write("common/wire/w.c", SPDX + "/*\n * What travels.\n */\n")
        self.assertNotIn("common/wire/w:", self.call("map.py", self.root).stdout)

    def test_a_sentence_that_is_too_long(self):
        self.write("common/wire/w.c", SPDX + "/* A" + " long" * 40 + " one. */\n")
        self.complains("common/wire/w: its first sentence has 205 letters of 200")

    def test_a_full_room(self):
        for number in range(30):
            self.write(f"common/wire/w{number}.c", SPDX + "/* Much. */\n")
        self.complains("common/wire: 31 files of 30: make folders by idea")

    def test_a_folder_without_a_title(self):
        self.write("common/wire/deep/w.c", SPDX + "/* Deep. */\n")
        self.complains("common/wire/deep: ranks.txt does not say what it is for")

    def test_a_map_of_another_tree(self):
        self.complains("docs/map.md: is not as the tree is")
        (self.root / "docs").mkdir()
        self.call("map.py", self.root, "--write")
        self.assertNotIn("docs/map.md", self.call("map.py", self.root).stdout)
        self.write("common/wire/w2.c", SPDX + "/* More. */\n")
        self.complains("docs/map.md: is not as the tree is")


class Paths(Tidy):
    def test_a_path_that_is_there_passes(self):
        self.write("README.md", "See `server/core/l.h`, `server/{s,core/l}.*`, `server/NAME.c`.\n")
        self.passes("paths.py", self.root)

    def test_a_path_that_has_gone(self):
        self.write("README.md", "See\n`server/gone.c`.\n")
        self.fails("README.md:2: there is no server/gone.c", "paths.py", self.root)


class Limits(Tidy):
    def check(self, text, message, name="server/s.c", licence=SPDX):
        self.write(name, licence + text)
        self.fails(message, "limits.py", self.root)

    def test_a_good_tree_passes(self):
        self.passes("limits.py", self.root)

    def test_a_function_of_70_lines_passes(self):
        self.write("server/s.c", SPDX + "int f(void)\n{\n" + "\t;\n" * 67 + "}\n")
        self.passes("limits.py", self.root)

    def test_a_function_of_71_lines(self):
        self.check("int f(void)\n{\n" + "\t;\n" * 68 + "}\n", "function of 71 lines")

    def test_a_signature_counts(self):
        self.check("static int\nf(int a,\n  int b)\n{\n" + "\t;\n" * 66 + "}\n",
                   "s.c:2: function of 71 lines")

    def test_a_long_file(self):
        self.check("\n" * 700, "701 lines of 700")

    def test_a_wide_line(self):
        self.check("/*" + "x" * 97 + "*/\n", "101 columns")

    def test_a_tab_is_eight_wide(self):
        self.check("\t/*" + "x" * 89 + "*/\n", "101 columns")

    def test_three_conditionals(self):
        self.check("#if 1\n#endif\n#ifdef A\n#elif 1\n#endif\n# ifndef B\n#endif\n", "3 #if of 2")

    def test_a_guard_is_no_conditional(self):
        guard = "#ifndef G_H\n#define G_H\n#if 1\n#endif\n#if 2\n#endif\n"
        self.write("server/g.h", SPDX + "/* Job. */\n" + guard + "#endif\n")
        self.passes("limits.py", self.root)
        self.check(guard + "#if 3\n#endif\n#endif\n", "3 #if of 2", "server/g.h")

    def test_no_licence(self):
        self.check("int x;\n", "s.c:1: no SPDX", licence="")
        self.check("true\n", "t.sh:2: no SPDX", "tools/t.sh", "#!/bin/sh\n")

    def test_banned_calls(self):
        for call in ("strcpy", "strcat", "sprintf", "atoi", "gets"):
            self.check(f"\tx = {call} (y);\n", f"{call}() is banned")

    def test_safe_namesakes_pass(self):
        self.write("server/s.c", SPDX + '/* gets() */ x = snprintf(a, 1, "atoi(%c", \'"\');\n'
                   "fgets(b);\n")
        self.passes("limits.py", self.root)


class Names(Tidy):
    def test_a_good_tree_passes(self):
        self.passes("names.py", self.root)

    def test_two_structs_of_one_name(self):
        self.write("server/s.c", SPDX + "struct job {\n\tint x;\n};\n")
        self.write("tests/t.c", SPDX + "struct job {\n\tint y;\n};\n")
        self.fails("tests/t.c:2: job is also a name in server/s.c:2", "names.py", self.root)

    def test_two_implementations_of_one_header_pass(self):
        self.write("server/s.h", SPDX + "struct job;\n")
        self.write("server/s.c", SPDX + "struct job {\n\tint x;\n};\n")
        self.write("tests/t.c", SPDX + "struct job {\n\tint y;\n};\n")
        self.passes("names.py", self.root)


    def test_each_dead_word(self):
        """In a name, in prose, and with an ending."""
        self.write("server/s.c", SPDX + "".join(f"/* ({w}) */\n" for w in names.DEAD))
        self.write("docs/d.md", "".join(f"{w.upper()}\n" for w in names.DEAD))
        self.write("tests/system/s.sh", "seat_of\nmst_gates\nfolded\n")
        run = self.call("names.py", self.root)
        for line, word in enumerate(names.DEAD):
            self.assertIn(f"server/s.c:{line + 2}: '{word}'", run.stdout)
            self.assertIn(f"docs/d.md:{line + 1}: '{word.upper()}'", run.stdout)
        for line in 1, 2, 3:
            self.assertIn(f"tests/system/s.sh:{line}: ", run.stdout)
        self.assertEqual(run.returncode, 1)

    def test_a_dead_word_passes_where_it_is_a_proper_term(self):
        at = collections.defaultdict(str)
        for word, (_, places) in names.DEAD.items():
            for place in places:
                at[place + "p.c" if place.endswith("/") else place] += word + "\n"
        for where, text in at.items():
            self.write(where, text)
        self.passes("names.py", self.root)

    def test_parts_of_words_pass(self):
        self.write("server/s.c", SPDX + "/* folder propagate leading early restriping */\n")
        self.passes("names.py", self.root)

    def test_riddles(self):
        """In a comment that is wrapped, in prose, and in a docstring."""
        self.write("server/s.c", SPDX + "/* The tasks behind\n * the commit wait. Those do. */\n"
                                        "/*\n * Of a tensor.\n */\n/* Whoever asks waits. */\n")
        self.write("docs/d.md", "It goes\nbehind that. Nor does it block.\n")
        self.write("tests/t.py", '"""Who leaves is not missed."""\n')
        run = self.call("names.py", self.root)
        for where in ("server/s.c:2: 'behind the'", "server/s.c:3: 'Those'",
                      "server/s.c:4: '/* Of'", "server/s.c:7: 'Whoever'",
                      "docs/d.md:2: 'behind that'", "docs/d.md:2: 'Nor'",
                      "tests/t.py:1: '\"\"\"Who'"):
            self.assertIn(where, run.stdout)
        self.assertIn("7 complaints", run.stdout)
        self.assertEqual(run.returncode, 1)

    def test_who_lags_is_behind(self):
        self.write("server/s.c", SPDX + "/* A worker falls behind the\n * others, is behind the "
                                        "history, or\n * waits behind it. Who may join? */\n")
        self.passes("names.py", self.root)


class Format(Tidy):
    def setUp(self):
        super().setUp()
        if shutil.which("clang-format-14") is None:
            self.skipTest("clang-format-14 is not installed")

    def test_a_good_tree_passes(self):
        self.passes("format.py", self.root)

    def test_spaces_for_tabs(self):
        self.write("server/s.c", SPDX + "int f(void)\n{\n    return 0;\n}\n")
        self.fails("server/s.c:", "format.py", self.root)


class Headers(Tidy):
    def test_a_good_tree_passes(self):
        self.passes("headers.py", self.root, "c", COMPILER)

    def test_a_missing_include(self):
        self.write("server/core/l.h", SPDX + "uint64_t mst_l(void);\n")
        self.fails("server/core/l.h: does not compile alone", "headers.py", self.root, "c",
                   COMPILER)

    def test_a_missing_guard(self):
        self.write("server/core/l.h", SPDX + "struct l { int x; };\n")
        self.fails("server/core/l.h", "headers.py", self.root, "c", COMPILER)

    def test_a_word_that_cxx_keeps_for_itself(self):
        if shutil.which("c++") is None:
            self.skipTest("no C++ compiler")
        self.passes("headers.py", self.root, "c++")
        self.write("include/muster/muster.h", SPDX + "extern int class;\n")
        self.fails("muster.h", "headers.py", self.root, "c++")


class Symbols(Tidy):
    def call_symbols(self, exported, version_script=GOOD["client/libmuster.map"]):
        """Arguments for symbols.py, with a library built of these functions."""
        self.write("client/libmuster.map", version_script)
        self.write("x.c", "".join(f"void {name}(void) {{}}\n" for name in exported))
        library = self.root / "x.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, self.root / "x.c"], check=True)
        return ("symbols.py", self.root / "include/muster/muster.h",
                self.root / "client/libmuster.map", library)

    def test_all_three_agree(self):
        self.passes(*self.call_symbols(["muster_go"]))

    def test_a_function_too_many(self):
        self.fails("mst_leak: in the library, not in the version script",
                   *self.call_symbols(["muster_go", "mst_leak"]))

    def test_a_function_that_is_missing(self):
        self.fails("muster_go: in the version script, not in the library",
                   *self.call_symbols(["f"]))

    def test_a_function_nobody_listed(self):
        self.fails("muster_go: in the header, not in the version script",
                   *self.call_symbols(["muster_go"], "MUSTER_0.1 {\nglobal:\nlocal:\n\t*;\n};\n"))

    def test_a_wildcard(self):
        self.fails("muster_*: in the version script, not in the header",
                   *self.call_symbols(["muster_go"], "V {\nglobal:\n\tmuster_*;\nlocal: *; };\n"))


class Shell(Tidy):
    def test_a_script_that_does_not_parse(self):
        self.write("deploy/d.sh", "#!/usr/bin/env bash\nif true; then\n")
        run = self.call("shell.sh", self.root)
        self.assertNotIn(run.returncode, (0, 77), run.stdout)

    def test_a_careless_script(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not installed")
        self.passes("shell.sh", self.root)
        self.write("deploy/d.sh", "#!/usr/bin/env bash\nrm $1\n")
        self.fails("SC2086", "shell.sh", self.root)


class Examples(Tidy):
    PROGRAM = ("import muster.torch\nsync = muster.torch.Sync(model)\n"
               "for x in sync.batches(loader):\n    loss(x).backward()\n    sync.step()\n"
               'print(f"muster: {loss}")  # sync\n')

    def setUp(self):
        super().setUp()
        for name in ("characters.py", "digits_cnn.py"):
            self.write(f"client/python/examples/{name}", self.PROGRAM)

    def test_a_line_that_speaks_of_muster_is_counted(self):
        self.write("client/python/examples/digits_cnn.py", self.PROGRAM + "f(rank=sync.rank)\n")
        self.passes("examples.py", self.root)
        for line in ('print(f"{sync.version}")', "g(sync)", "muster.torch.alone()"):
            self.write("client/python/examples/digits_cnn.py",
                       self.PROGRAM + f"f(rank=sync.rank)\n{line}\n")
            self.fails("6 lines speak of muster, of 5", "examples.py", self.root)

    def test_length(self):
        self.write("client/python/examples/new.py", "#\n" * 101)
        self.fails("new.py: 101 lines of 100", "examples.py", self.root)


class Promises(Tidy):
    def setUp(self):
        super().setUp()
        self.write("tests/vm/run.py", 'print("vm.one\\n  jobs.loss: none of it is seen")\n')
        self.write("CTestTestfile.cmake", "add_test(unit.sum true)\nadd_test(system.end true)\n")

    def test_a_promise_that_no_test_holds(self):
        rows = "| a sum | `unit.s*`, `system.end` (`a.c`) |\n| a loss | `jobs.loss` of `vm.one` |\n"
        self.write("tests/README.md", rows)
        self.fails("README.md:2: there is no test vm.one", "promises.py", self.root, self.root)
        self.write("tests/README.md", rows.replace(" of `vm.one`", ""))
        self.passes("promises.py", self.root, self.root)
        self.write("tests/README.md", rows.replace("unit.s*", "unit.t*").replace("vm", "a"))
        self.fails("README.md:1: there is no test unit.t*", "promises.py", self.root, self.root)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
