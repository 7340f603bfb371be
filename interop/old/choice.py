"""What to run: cases chosen by the arguments of the command line."""

import os

from interop.old import graphs, later, programs, tutorials

RELEASES = ["0.12", "1.4", "1.15"]
MORE_RELEASES = ["1.0", "1.8", "1.12"]

# The choice has all graphs where Weft serves the parameter server, the master, or worker 1 alone.
QUICK_CLUSTERS = {"0.12": ["WTT", "TWT"], "1.4": ["WTT", "TWT"], "1.15": ["WTT", "TTW", "TWT"]}


class GraphCase:
    """The graphs on one cluster, by one release."""

    many = True

    def __init__(self, release, cluster, names):
        self.release, self.cluster, self.names = release, cluster, names
        self.title = f"graphs {release} {cluster}"
        self.folder = os.path.join("graphs", f"{release}-{cluster}")

    def run(self, python, folder, server):
        return graphs.run(self.release, python, self.cluster, self.names, folder, server)


class ProgramCase:
    """A program in one layout, by one release."""

    many = False

    def __init__(self, release, layout, program):
        self.release, self.layout, self.program = release, layout, program
        self.title = f"program {type(program).__name__} {release} {layout}"
        self.folder = os.path.join(type(program).__name__, f"{release}-{layout}")

    def run(self, python, folder, server):
        with programs.Run(self.program, self.layout, self.release, python, folder, server) as run:
            run.go()
        yield self.title, "ok", ""


def cases(args):
    """Returns the cases to run: the choice, all, or those that the arguments name."""
    named = bool(args.releases or args.places or args.names)
    found = []
    for release in RELEASES + MORE_RELEASES:
        for cluster in graphs.CLUSTERS:
            quick = cluster in QUICK_CLUSTERS.get(release, [])
            names = [n for n in args.names if any(n in g for g in graphs.names())]
            if wanted(args, release, cluster, named, quick) and (names or not args.names):
                found.append(GraphCase(release, cluster, names))
    for p in tutorials.PROGRAMS:
        for release in p.releases:
            for layout in p.layouts:
                quick = (release, layout) in p.quick
                named_so = any(n.lower() in type(p).__name__.lower() for n in args.names)
                if (release, layout) in p.left_out:
                    continue
                if wanted(args, release, layout, named, quick) and (named_so or not args.names):
                    found.append(ProgramCase(release, layout, p))
    for release in later.RELEASES:
        if args.all and not args.names or release in args.releases or later.NAME in args.names:
            found.append(later.SessionCase(release))
    return found


def wanted(args, release, place, named, quick):
    if args.releases and release not in args.releases or args.places and place not in args.places:
        return False
    return args.all or named or quick
