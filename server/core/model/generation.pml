/* SPDX-License-Identifier: MIT */
/*
 * Generations: a server is lost, another starts with what the ranks bring. Workers own the
 * parameters. A server of the model stands for all servers of a generation, for they end together.
 * One process is a server or a rank; each step of it is indivisible. README.md says what is left
 * out.
 *
 * The name of a version, a *node*, is the server that made it and the version. So two servers that
 * make the same version make two nodes, and what a rank has is a node.
 */

/* Figures, set by run.py. */
#define W 3          /* ranks */
#ifndef SERVERS
#define SERVERS 3    /* that are started, one after the other, at most */
#endif
#ifndef NEWEST
#define NEWEST 2     /* the last version; the first is 0 */
#endif
#ifndef MIN
#define MIN 2        /* --min-workers */
#endif
#ifndef QUORUM
#define QUORUM 0     /* 0: all of the roster */
#endif
#ifndef KILLS
#define KILLS 1      /* servers that are lost, at most */
#endif
#ifndef FREEZES
#define FREEZES 0    /* servers that stand still for a time, at most */
#endif
#ifndef CUTS
#define CUTS 0       /* ranks that lose a server that is well, at most */
#endif
#ifndef EVICTIONS
#define EVICTIONS 0  /* ranks that a server gives up, at most */
#endif
#ifndef CRASHES
#define CRASHES 0    /* ranks that come back as new processes, at most */
#endif
#ifndef MAY_RUN_OUT
#define MAY_RUN_OUT 0 /* 1: at the end there may be no server, for all have been started and lost */
#endif
#ifndef STRANGER
#define STRANGER 0   /* 1: in place of the last rank there is a worker of another run */
#endif
#ifndef INCARNATIONS
#define INCARNATIONS 0 /* 1: looks at the incarnations, too */
#endif

#define ALL ((1 << W) - 1)
#define BIT(r) (1 << (r))
#define NONE 255
#define NOBODY SERVERS /* no server; as a maker of versions: another run */
#define PER_SERVER (NEWEST + 1)
#define NODE(g, v) ((g) * PER_SERVER + (v))
#define NODES NODE(SERVERS + 1, 0)
#define MAKER(x) ((x) / PER_SERVER)
#define VERSION(x) ((x) % PER_SERVER)
#define MAJORITY (W / 2 + 1)
#define COUNT(bits) (((bits) & 1) + (((bits) >> 1) & 1) + (((bits) >> 2) & 1))

/* Mutants: -DMUTANT=NAME turns one of these on. README.md has what each breaks. */
#define NOT_MUTATED 0
#define LOWEST_CLAIM 1
#define CLAIM_DELIVERED 2
#define KEEP_BEHIND 3
#define CANCEL_COUNTED 4
#define OTHER_RUN 5
#define HALF 6
#define INCARNATION_AGAIN 7
#define OLD_WORD 8
#define OLD_ANSWER 9
#define TORN_OFFERED 10
#define VERSION_ALONE 11
#define NUMBER_CLAIMED 12
#define LINE_BY_NUMBER 13
#define NEW_COUNTS 14
#define TAKES_BACK 15
#define TOLD_EARLY 16
#define MARK_LATE 17
#define MARK_FIRST 18
#define SET_OF_ANY 19
#define VERDICT_AGAIN 20
#define NO_VERSION 21
#ifndef MUTANT
#define MUTANT NOT_MUTATED
#endif
#define IS(mutant) (MUTANT == mutant)

/* What is promised. A promise is a name in the text of the assertion that fails; always false. */
#define must(condition, promise) assert((condition) || promise)
hidden byte RESULT;   /* whoever has a version of a generation has the same bytes */
hidden byte LINE;     /* the next generation has what its ranks had in outcomes */
hidden byte KEPT;     /* what was told counted is in the line that goes on */
hidden byte VERDICT;  /* one verdict for each ticket, and the right one */
hidden byte ALONE;    /* when a server starts, no other one can go on */
hidden byte ONE_RUN;  /* a run begins anew only with all ranks, if none has anything of it */
hidden byte AGAIN;    /* an incarnation is not used twice */
hidden byte GOES_ON;  /* after the last fault the versions are made, to the last */

/* What a search that is worth its name must come by; run.py sees to it that each is printed. */
#define reach(what) c_code { static int once; \
	if (!once) { once = 1; fprintf(stderr, "reached %s\n", #what); } }
c_decl {
\#include <stdio.h>
}

mtype = { UNBORN, GATHERS, RUNS, DEAD }                     /* a server */
mtype = { LOOKS, SAID_HELLO, HAS_COPIED, READY, WORKS, REFUSED } /* a rank */
mtype = { KEEP, MEAN, STATE }                               /* an answer to START */
mtype = { NOWHERE, PRIVATE, IN_AREA }                       /* where a rank has its result */

/* ---- the servers ---- */
mtype server_is[SERVERS];
bit frozen[SERVERS];
byte born;
byte number[SERVERS + 1];  /* of its generation */
byte began[SERVERS + 1];   /* a node */
byte newest[SERVERS];      /* version */
byte sessions[SERVERS];    /* ranks that it has a session with, or a hello of: bits */
byte roster[SERVERS], counted[SERVERS];
byte set[NODES];

/* ---- the ranks ---- */
mtype rank_is[W];
byte at[W];        /* the server that it has a session with, or has said hello to */
byte mem[W];       /* the server whose links it has: its slots, its area */
byte has[W];       /* node of its last outcome: it made its state with that */
byte gen[W];        /* the generation of its last outcome */
byte seen[W];      /* the highest number for which it has said START */
byte claim[W], claim_of[W];
bit was_in[W];     /* has no outcome yet, but a generation has begun with it */
byte incarnation[W];
mtype held[W];
byte copy[W];      /* its private copy of the result; NONE: torn */
byte looked[W];    /* the mark, as the library has seen it */
bit whole[W];      /* it says so at START */
mtype due[W];      /* the answer to START */
byte gift[W];      /* the bytes with it */
bit open[W];       /* it has a ticket without a verdict, */
byte pushed_to[W]; /* which it pushed to this server */

/* ---- the links that rank r has, to mem[r] ---- */
bit unread[W];       /* a push that the server has not read */
bit asked[W], late[W];
byte sends[W];     /* how much of an answer has been written: 0 nothing, 1 a part */
byte mark[W];      /* the version that is, or will be, written here */
byte half[W], other_half[W];
byte answer[W];    /* a node that has come whole; NONE */
/* A push that it has left in memory of the session before, which this server may still read. */
byte left_at[W], left_tag[W];

/* ---- for the promises alone ---- */
byte counted_in[W];  /* node in which the open ticket is, or would be; NONE */
byte told[W];        /* newest node that it was told counted in; NONE */
byte order[SERVERS + 1], starts;
byte used[W];        /* incarnations */
bit rested;
byte kills_left = KILLS, freezes_left = FREEZES, cuts_left = CUTS;
byte evictions_left = EVICTIONS, crashes_left = CRASHES;

/* Scratch of one indivisible step: always written before it is read. */
hidden byte x, y, n, m, best, ready, head, found, line_at, line_version;
hidden mtype kind;

#define UP(g) (server_is[g] != UNBORN && server_is[g] != DEAD && !frozen[g])
#define HEAD(g) (newest[g] > VERSION(began[g]) -> NODE(g, newest[g]) : began[g])
#define BEFORE(x) (VERSION(x) == 0 -> NONE : \
	(VERSION(x) - 1 == VERSION(began[MAKER(x)]) -> began[MAKER(x)] : (x) - 1))

/* line_at: the node of version @v on the line that ends with @h; NONE. */
inline find_on_line(h, v)
{
	line_at = h;
	do
	:: line_at != NONE && VERSION(line_at) > v -> line_at = BEFORE(line_at)
	:: else -> break
	od;
	line_at = (line_at != NONE && VERSION(line_at) == v -> line_at : NONE)
}

/* found: @node is on the line that ends with @h. */
inline find_in_line(node, h)
{
	line_version = VERSION(node);
	find_on_line(h, line_version);
	found = (line_at == node)
}

/* ---- verdicts ---- */

inline tell_counted(r)
{
	open[r] = 0;
	told[r] = counted_in[r];
	counted_in[r] = NONE
}

/* A ticket that was open when its server was lost: the sets of the versions that @r lacks, up to
 * @h, say what became of it. A push to one generation is in no version of another one. */
inline settle(r, h)
{
	if
	:: open[r] ->
		found = 0;
		x = h;
		do
		:: x != NONE && (has[r] == NONE || VERSION(x) > VERSION(has[r])) ->
			found = found || ((set[x] & BIT(r)) &&
				(MAKER(x) == pushed_to[r] || IS(SET_OF_ANY)));
			x = BEFORE(x)
		:: else -> break
		od;
		n = found && !IS(CANCEL_COUNTED);
		y = counted_in[r];
		if
		:: y != NONE -> find_in_line(y, h)
		:: else -> found = 0
		fi;
		must(n == found, VERDICT);
		if
		:: n -> reach(counted_by_a_set); tell_counted(r)
		:: else ->
			reach(cancelled_by_a_start);
			open[r] = (IS(VERDICT_AGAIN) -> 1 : 0);
			counted_in[r] = NONE
		fi
	:: else
	fi
}

/* ---- sessions ---- */

inline clear_links(r)
{
	unread[r] = 0; asked[r] = 0; late[r] = 0; sends[r] = 0; mark[r] = 0;
	half[r] = NONE; other_half[r] = NONE; answer[r] = NONE
}

inline lose_server(r)
{
	at[r] = NOBODY;
	rank_is[r] = LOOKS;
	claim[r] = NONE; claim_of[r] = NOBODY;
	due[r] = 0; gift[r] = NONE; looked[r] = 0
}

inline end_session(g, r)
{
	sessions[g] = sessions[g] & ~BIT(r);
	roster[g] = roster[g] & ~BIT(r);
	left_at[r] = (left_at[r] == g -> NOBODY : left_at[r]);
	left_tag[r] = (left_at[r] == NOBODY -> 0 : left_tag[r]);
	if
	:: server_is[g] == RUNS && COUNT(sessions[g]) < MIN -> reach(too_few); die(g)
	:: else
	fi
}

inline die(g)
{
	server_is[g] = DEAD;
	frozen[g] = 0; newest[g] = 0;
	sessions[g] = 0; roster[g] = 0; counted[g] = 0
}

inline take_incarnation(r)
{
#if INCARNATIONS
	if
	:: !IS(INCARNATION_AGAIN) -> incarnation[r]++
	:: else
	fi;
	must((used[r] & BIT(incarnation[r])) == 0, AGAIN);
	used[r] = used[r] | BIT(incarnation[r])
#else
	skip
#endif
}

/* ---- hello ---- */

/* A hello at a server that gathers: its claim. The number of the generation is above all that the
 * ranks have seen. Who was welcomed with a lower one is sent back, to say hello again. */
inline say_claim(r, g)
{
	claim[r] = has[r];
	claim_of[r] = gen[r];
	if
	:: IS(CLAIM_DELIVERED) && sends[r] > 0 && half[r] != NONE -> claim[r] = half[r]
	:: else
	fi;
	x = (IS(NUMBER_CLAIMED) -> number[gen[r]] : seen[r]);
	if
	:: x >= number[g] ->
		number[g] = x + 1;
		n = 0;
		do
		:: n < W ->
			if
			:: (sessions[g] & BIT(n)) && at[n] == g && !IS(NUMBER_CLAIMED) ->
				reach(number_raised);
				sessions[g] = sessions[g] & ~BIT(n);
				lose_server(n)
			:: else
			fi;
			n++
		:: else -> break
		od
	:: else
	fi;
	at[r] = g;
	rank_is[r] = SAID_HELLO;
	sessions[g] = sessions[g] | BIT(r);
	take_incarnation(r)
}

/* A hello at a server that runs: the rank has its newest version, or takes a state. */
inline join_running(r, g)
{
	if
	:: seen[r] > number[g] && !IS(TAKES_BACK) -> reach(superseded); die(g)
	:: else ->
		head = HEAD(g);
		if
		:: has[r] != NONE ->
			must(gen[r] == NOBODY || order[gen[r]] <= order[g], LINE);
			find_in_line(has[r], head);
			must(found || gen[r] != g, LINE);
			if
			:: !found -> reach(withdrawn); told[r] = NONE
			:: else
			fi
		:: else
		fi;
		settle(r, head);
		held[r] = (has[r] == head && held[r] == PRIVATE -> PRIVATE : NOWHERE);
		copy[r] = (held[r] == PRIVATE -> copy[r] : NONE);
		/* By numbers alone it would be told to keep what it has. */
		must(!(IS(LINE_BY_NUMBER) && has[r] != NONE && VERSION(has[r]) == newest[g] &&
			number[gen[r]] + 1 == number[g] &&
			VERSION(has[r]) <= VERSION(began[g])) || has[r] == head, RESULT);
		has[r] = head; was_in[r] = 0;
		enter(r, g);
		sessions[g] = sessions[g] | BIT(r);
		take_incarnation(r);
		reach(joins_a_running_generation)
	fi
}

/* It has had an outcome of g's generation. */
inline enter(r, g)
{
	gen[r] = g;
	at[r] = g;
	mem[r] = g;
	seen[r] = number[g];
	clear_links(r);
	claim[r] = NONE; claim_of[r] = NOBODY; due[r] = 0; gift[r] = NONE; looked[r] = 0;
	whole[r] = 0;
	rank_is[r] = WORKS
}

inline hello(r, g)
{
	lose_server(r);
	if
	:: gen[r] == NOBODY && has[r] != NONE && !IS(OTHER_RUN) ->
		reach(stranger_refused); rank_is[r] = REFUSED
	:: (gen[r] != NOBODY || has[r] == NONE || IS(OTHER_RUN)) && server_is[g] == GATHERS ->
		say_claim(r, g)
	:: (gen[r] != NOBODY || has[r] == NONE || IS(OTHER_RUN)) && server_is[g] == RUNS ->
		join_running(r, g)
	fi
}

/* ---- the start ---- */

/* Ranks that have said START to g, those of them with a claim, and who has said hello only. */
#define IS_READY(g, r) (at[r] == g && (sessions[g] & BIT(r)) && rank_is[r] == READY)
#define VOTES(g, r) (IS_READY(g, r) && \
	(claim[r] != NONE || was_in[r] || IS(NEW_COUNTS)))
#define BRINGS(g, r) (IS_READY(g, r) && claim[r] != NONE)
#define KNOWN(g) (BRINGS(g, 0) || BRINGS(g, 1) || BRINGS(g, 2) || IS(NO_VERSION))
#define PENDS(g, r) (at[r] == g && (sessions[g] & BIT(r)) && rank_is[r] != READY)
#define VOTERS(g) (VOTES(g, 0) + VOTES(g, 1) + VOTES(g, 2))
#define NEEDED (IS(HALF) -> W / 2 : (MIN > MAJORITY -> MIN : MAJORITY))
#define MAY_START(g) (server_is[g] == GATHERS && !frozen[g] && \
	!(PENDS(g, 0) || PENDS(g, 1) || PENDS(g, 2)) && \
	((IS_READY(g, 0) && IS_READY(g, 1) && IS_READY(g, 2)) || \
	((MIN >= MAJORITY || IS(HALF)) && VOTERS(g) >= NEEDED && KNOWN(g))))

#define NEWER(a, b) (IS(VERSION_ALONE) -> VERSION(claim[a]) > VERSION(claim[b]) : \
	(number[claim_of[a]] > number[claim_of[b]] || \
	(number[claim_of[a]] == number[claim_of[b]] && VERSION(claim[a]) > VERSION(claim[b]))))

/* best: the rank whose claim is the newest; W: nobody has one. */
inline find_newest()
{
	best = W; n = 0;
	do
	:: n < W ->
		if
		:: (ready & BIT(n)) && claim[n] != NONE ->
			if
			:: best == W -> best = n
			:: best < W && (IS(LOWEST_CLAIM) -> NEWER(best, n) : NEWER(n, best)) ->
				best = n
			:: else
			fi
		:: else
		fi;
		n++
	:: else -> break
	od
}

/* Whether a rank is on the line, by numbers: not what the server does, but a mutant. */
#define BY_NUMBER(r) (claim_of[r] == claim_of[best] || \
	(number[claim_of[r]] + 1 == number[claim_of[best]] && \
	VERSION(claim[r]) <= VERSION(began[claim_of[best]])))

inline answer_start(r, g)
{
	x = began[g];
	if
	:: claim[r] == NONE -> kind = STATE
	:: claim[r] != NONE && IS(LINE_BY_NUMBER) ->
		kind = (!BY_NUMBER(r) -> STATE : (VERSION(claim[r]) == VERSION(x) -> KEEP :
			(VERSION(claim[r]) + 1 == VERSION(x) -> MEAN : STATE)))
	:: claim[r] != NONE && !IS(LINE_BY_NUMBER) ->
		kind = (claim[r] == x -> KEEP : (claim[r] == BEFORE(x) -> MEAN : STATE))
	fi;
	if
	:: IS(KEEP_BEHIND) && kind == MEAN -> kind = KEEP
	:: else
	fi;
	/* A donor: a rank that has v*, and a whole copy of its result. */
	if
	:: kind == MEAN ->
		y = 0;
		do
		:: y < W && !((ready & BIT(y)) && claim[y] == x && whole[y]) -> y++
		:: else -> break
		od;
		if
		:: y < W -> gift[r] = copy[y]
		:: else -> reach(no_donor); kind = STATE
		fi
	:: else
	fi;
	due[r] = kind
}

/* What is promised of a start, when began[g] and ready are known. */
inline judge_start(g)
{
	n = 0;
	do
	:: n < SERVERS ->
		if
		:: n != g && server_is[n] == RUNS ->
			m = (at[0] == n && rank_is[0] == WORKS) +
				(at[1] == n && rank_is[1] == WORKS) +
				(at[2] == n && rank_is[2] == WORKS);
			must(m < MIN, ALONE)
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < W ->
		if
		:: (ready & BIT(n)) && has[n] != NONE ->
			/* What a rank has may be missing only if a server began without it that
			 * started later than the rank's, and that somebody has an outcome of. */
			m = 0;
			if
			:: best < W && order[claim_of[best]] > order[gen[n]] ->
				y = began[claim_of[best]];
				find_in_line(has[n], y);
				m = !found
			:: else
			fi;
			find_in_line(has[n], began[g]);
			must(found || m, LINE);
			if
			:: !found -> reach(withdrawn_at_a_start)
			:: else
			fi;
			if
			:: told[n] != NONE ->
				find_in_line(told[n], began[g]);
				must(found || m, KEPT)
			:: else
			fi
		:: else
		fi;
		n++
	:: else -> break
	od
}

inline start(g)
{
	ready = IS_READY(g, 0) + IS_READY(g, 1) * 2 + IS_READY(g, 2) * 4;
	find_newest();
	if
	:: best == W ->
		must(ready == ALL, ONE_RUN);
		reach(begins_anew);
		began[g] = NODE(g, 0)
	:: else -> began[g] = claim[best]
	fi;
	judge_start(g);
	newest[g] = VERSION(began[g]);
	n = 0;
	do
	:: n < W ->
		if
		:: ready & BIT(n) ->
			if
			:: was_in[n] && ready != ALL -> reach(counts_without_an_outcome)
			:: else
			fi;
			was_in[n] = (has[n] == NONE -> 1 : 0);
			answer_start(n, g)
		:: else
		fi;
		n++
	:: else -> break
	od;
	if
	:: ready != ALL -> reach(starts_without_a_rank)
	:: else
	fi;
	server_is[g] = RUNS;
	sessions[g] = ready;
	roster[g] = ready;
	starts++;
	order[g] = starts
}

/* Its START is answered. */
inline take_start(r, g)
{
	x = began[g];
	if
	:: due[r] == KEEP -> reach(keeps); must(has[r] == x, RESULT)
	:: due[r] == MEAN ->
		reach(takes_a_mean);
		must(has[r] == BEFORE(x) && gift[r] == x, RESULT);
		held[r] = PRIVATE; copy[r] = gift[r]
	:: due[r] == STATE ->
		reach(takes_a_state);
		held[r] = NOWHERE; copy[r] = NONE;
		if
		:: has[r] != NONE ->
			find_in_line(has[r], x);
			told[r] = (found -> told[r] : NONE)
		:: else
		fi
	fi;
	settle(r, began[g]);
	has[r] = began[g]; was_in[r] = 0;
	enter(r, g)
}

/* ---- a server that runs ---- */

/* It judges a push, of a rank whose links it has, or which has left them. */
inline judge(g, r)
{
	if
	:: left_at[r] == g -> n = left_tag[r]; left_at[r] = NOBODY; left_tag[r] = 0
	:: else -> n = VERSION(has[r]); unread[r] = 0
	fi;
	if
	:: n == newest[g] ->
		counted[g] = counted[g] | BIT(r);
		if
		:: open[r] && pushed_to[r] == g -> counted_in[r] = NODE(g, newest[g] + 1)
		:: else
		fi;
		if
		:: at[r] != g -> reach(counts_what_lies)
		:: else
		fi
	:: n != newest[g] && mem[r] == g -> reach(late); late[r] = 1
	:: n != newest[g] && mem[r] != g -> skip
	fi
}

#if QUORUM == 0
#define RULE_MET(g) ((roster[g] & ~counted[g]) == 0)
#else
#define RULE_MET(g) (COUNT(counted[g]) >= QUORUM || (roster[g] & ~counted[g]) == 0)
#endif
#define COMMITS(g) (server_is[g] == RUNS && !frozen[g] && counted[g] != 0 && newest[g] < NEWEST && \
	RULE_MET(g))

inline commit(g)
{
	newest[g]++;
	x = NODE(g, newest[g]);
	must(set[x] == 0, RESULT);
	set[x] = counted[g];
	counted[g] = 0;
	roster[g] = sessions[g]
}

#define JUDGES(g, r) (server_is[g] == RUNS && !frozen[g] && (sessions[g] & BIT(r)) && \
	(left_at[r] == g || (mem[r] == g && unread[r])))
#define SENDS(g, r) (server_is[g] == RUNS && !frozen[g] && (sessions[g] & BIT(r)) && mem[r] == g && \
	asked[r] && !unread[r] && VERSION(has[r]) < newest[g])

/* An answer is written piece by piece, into memory that the rank reads: the mark first. */
inline send_piece(g, r)
{
	head = HEAD(g);
	n = VERSION(has[r]) + 1;
	find_on_line(head, n);
	if
	:: sends[r] == 0 ->
		mark[r] = (IS(MARK_LATE) -> mark[r] : VERSION(line_at));
		half[r] = line_at;
		sends[r] = 1
	:: sends[r] == 1 ->
		mark[r] = VERSION(line_at);
		other_half[r] = line_at;
		answer[r] = line_at;
		asked[r] = 0;
		sends[r] = 0
	fi
}

#define NOTICES(g, r) (UP(g) && (sessions[g] & BIT(r)) && at[r] != g)

/* One server of a generation, as soon as no other is well. */
#define LOST_ALL(g) ( \
	(g == 0 || server_is[0] == DEAD || frozen[0]) && \
	(g <= 1 || server_is[(g > 1 -> 1 : 0)] == DEAD || frozen[(g > 1 -> 1 : 0)]) && \
	(g <= 2 || server_is[(g > 2 -> 2 : 0)] == DEAD || frozen[(g > 2 -> 2 : 0)]) && \
	(g <= 3 || server_is[(g > 3 -> 3 : 0)] == DEAD || frozen[(g > 3 -> 3 : 0)]))
#define OTHER_RUNS(g) ( \
	(g != 0 && server_is[0] == RUNS && !frozen[0]) || \
	(SERVERS > 1 && g != 1 && server_is[1 % SERVERS] == RUNS && !frozen[1 % SERVERS]) || \
	(SERVERS > 2 && g != 2 && server_is[2 % SERVERS] == RUNS && !frozen[2 % SERVERS]) || \
	(SERVERS > 3 && g != 3 && server_is[3 % SERVERS] == RUNS && !frozen[3 % SERVERS]))

#define OF_RANKS(g, r) \
	:: d_step { JUDGES(g, r) -> judge(g, r) } \
	:: d_step { SENDS(g, r) -> send_piece(g, r) } \
	:: d_step { NOTICES(g, r) -> end_session(g, r) } \
	:: d_step { UP(g) && server_is[g] == RUNS && (sessions[g] & BIT(r)) && at[r] == g && \
		r == 0 && evictions_left > 0 -> \
		printf("server %d gives up rank %d\n", g, r); \
		evictions_left--; end_session(g, r) }

proctype server(byte g)
{
end:	do
	:: d_step { server_is[g] == UNBORN && born == g && LOST_ALL(g) && !rested ->
		printf("server %d gathers\n", g);
		server_is[g] = GATHERS; born++ }
	:: d_step { MAY_START(g) ->
		start(g);
		printf("server %d starts number %d at %d, with ranks %d\n", g, number[g], began[g],
		       ready) }
	/* Its join timeout. The ranks are with another one. */
	:: d_step { server_is[g] == GATHERS && !frozen[g] && OTHER_RUNS(g) -> die(g) }
	:: d_step { COMMITS(g) ->
		commit(g);
		printf("server %d commits %d of %d\n", g, newest[g], set[x]) }
	OF_RANKS(g, 0)
	OF_RANKS(g, 1)
	OF_RANKS(g, 2)
	:: d_step { server_is[g] != UNBORN && server_is[g] != DEAD && kills_left > 0 ->
		printf("server %d is killed\n", g);
		kills_left--; die(g) }
	:: d_step { UP(g) && freezes_left > 0 ->
		printf("server %d stands still\n", g);
		freezes_left--; frozen[g] = 1 }
	:: d_step { frozen[g] -> printf("server %d wakes\n", g); frozen[g] = 0 }
	/* A supervisor ends a server that is silent, once there is another. */
	:: d_step { frozen[g] && born > g + 1 -> die(g) }
	od
}

/* ---- a rank ---- */

#define IS_LOST(r) (at[r] != NOBODY && \
	(server_is[at[r] % SERVERS] == DEAD || frozen[at[r] % SERVERS] || \
	!(sessions[at[r] % SERVERS] & BIT(r))))
#if MUTANT == OLD_WORD
#define LEAVES(r) (IS_LOST(r) || (at[r] != NOBODY && at[r] > 0 && server_is[at[r] - 1] == DEAD))
#else
#define LEAVES(r) IS_LOST(r)
#endif
#define MAY_CALL(r) (rank_is[r] == LOOKS || (rank_is[r] != REFUSED && LEAVES(r)))
/* To memory of a server that is dead, a push is as good as one before its end. */
#define PUSHES(r) (!open[r] && !unread[r] && answer[r] == NONE && has[r] != NONE && \
	VERSION(has[r]) < NEWEST && mem[r] != NOBODY && server_is[mem[r] % SERVERS] != DEAD && \
	(rank_is[r] == WORKS || rank_is[r] == LOOKS || rank_is[r] == SAID_HELLO))
#define TAKES(r) (answer[r] != NONE && \
	(rank_is[r] == WORKS || (IS(OLD_ANSWER) && rank_is[r] == SAID_HELLO)))

inline push(r)
{
	open[r] = 1;
	pushed_to[r] = mem[r];
	unread[r] = 1;
	asked[r] = 1;
	late[r] = 0
}

/* The outcome of an ordinary answer. */
inline take_answer(r)
{
	x = answer[r];
	must(has[r] == BEFORE(x) && half[r] == x && other_half[r] == x, RESULT);
	answer[r] = NONE;
	has[r] = x; was_in[r] = 0;
	held[r] = IN_AREA;
	copy[r] = NONE;
	if
	:: open[r] && late[r] -> open[r] = 0; counted_in[r] = NONE
	:: open[r] && !late[r] ->
		must(counted_in[r] == x, VERDICT);
		tell_counted(r)
	:: else
	fi;
	late[r] = 0
}

/* The library makes a private copy of the result, and then looks at the mark. */
inline look(r)
{
	looked[r] = (held[r] == PRIVATE || (held[r] == IN_AREA && mark[r] == VERSION(has[r])))
}

inline copy_result(r)
{
	copy[r] = (held[r] == PRIVATE -> copy[r] : (held[r] == IN_AREA && half[r] == other_half[r] ->
		half[r] : NONE))
}

#define MAY_BE_WRITTEN(r) (held[r] == IN_AREA && mem[r] != NOBODY && \
	server_is[mem[r] % SERVERS] != DEAD && (asked[r] || unread[r]))

/* New links; the old ones are left with what lies there. START. */
inline swap(r)
{
	whole[r] = looked[r] || (IS(TORN_OFFERED) && held[r] == IN_AREA);
	if
	:: held[r] == IN_AREA && !whole[r] -> reach(torn)
	:: else
	fi;
	held[r] = (whole[r] -> PRIVATE : NOWHERE);
	copy[r] = (whole[r] -> copy[r] : NONE);
	if
	:: unread[r] && mem[r] != NOBODY && mem[r] != at[r] &&
	   (sessions[mem[r] % SERVERS] & BIT(r)) ->
		left_at[r] = mem[r]; left_tag[r] = VERSION(has[r])
	:: else
	fi;
	clear_links(r);
	mem[r] = at[r];
	seen[r] = number[at[r]];
	looked[r] = 0;
	rank_is[r] = READY
}

inline crash(r)
{
	lose_server(r);
	clear_links(r);
	mem[r] = NOBODY;
	has[r] = NONE; gen[r] = NOBODY; seen[r] = 0; was_in[r] = 0;
	held[r] = NOWHERE; copy[r] = NONE; whole[r] = 0;
	open[r] = 0; pushed_to[r] = NOBODY; counted_in[r] = NONE; told[r] = NONE
}

#define HELLO(r, g) \
	:: d_step { g < SERVERS && MAY_CALL(r) && UP(g) && !(sessions[g] & BIT(r)) && \
		!(counted[g] & BIT(r)) -> \
		hello(r, g); \
		printf("rank %d with %d of %d says hello to server %d\n", r, has[r], gen[r], g) }

proctype rank(byte r)
{
end:	do
	HELLO(r, 0)
#if SERVERS > 1
	HELLO(r, 1)
#endif
#if SERVERS > 2
	HELLO(r, 2)
#endif
#if SERVERS > 3
	HELLO(r, 3)
#endif
	:: d_step { PUSHES(r) -> push(r) }
	:: d_step { TAKES(r) -> take_answer(r);
		printf("rank %d has %d\n", r, has[r]) }
	/* A push that does not ask, whose verdict a later outcome brings. */
	:: d_step { IS(TOLD_EARLY) && open[r] && counted_in[r] != NONE && rank_is[r] == WORKS ->
		tell_counted(r) }
	/* Between the two, a server that is not dead may write. */
	:: d_step { rank_is[r] == SAID_HELLO && !MAY_BE_WRITTEN(r) ->
		copy_result(r); look(r); swap(r) }
	:: d_step { rank_is[r] == SAID_HELLO && MAY_BE_WRITTEN(r) ->
		if
		:: IS(MARK_FIRST) -> look(r)
		:: else -> copy_result(r)
		fi;
		rank_is[r] = HAS_COPIED }
	:: d_step { rank_is[r] == HAS_COPIED ->
		if
		:: IS(MARK_FIRST) -> copy_result(r)
		:: else -> look(r)
		fi;
		swap(r) }
	:: d_step { rank_is[r] == READY && server_is[at[r] % SERVERS] == RUNS &&
		    (sessions[at[r] % SERVERS] & BIT(r)) ->
		take_start(r, at[r]);
		printf("rank %d has %d, of server %d\n", r, has[r], at[r]) }
	:: d_step { IS(OLD_WORD) && LEAVES(r) && !IS_LOST(r) -> lose_server(r) }
	:: d_step { r == 0 && cuts_left > 0 && at[r] != NOBODY && !IS_LOST(r) ->
		printf("rank %d is cut off\n", r);
		cuts_left--; lose_server(r) }
	:: d_step { r < CRASHES && crashes_left > 0 && (rank_is[r] == WORKS || rank_is[r] == LOOKS) && has[r] != NONE ->
		printf("rank %d is a new process\n", r);
		crashes_left--; crash(r) }
	od
}

/* All has come to rest: has every rank the last version? */
inline judge_rest()
{
	n = 0; m = 0;
	do
	:: n < SERVERS -> m = m + UP(n); n++
	:: else -> break
	od;
	must(m > 0 || MAY_RUN_OUT, GOES_ON);
	n = 0;
	do
	:: n < W ->
		must(m == 0 || rank_is[n] == REFUSED || (has[n] != NONE && VERSION(has[n]) == NEWEST),
		     GOES_ON);
		n++
	:: else -> break
	od;
	if
	:: m > 0 && born > 1 -> reach(goes_on)
	:: else
	fi;
	rested = 1
}

/* Nothing goes on for ever. */
ltl comes_to_rest { <> (rested) }

init
{
	d_step {
		n = 0;
		do
		:: n < W ->
			mem[n] = 0; has[n] = NODE(0, 0); gen[n] = 0; seen[n] = 1; at[n] = 0;
			rank_is[n] = WORKS;
			if
			:: STRANGER && n == W - 1 ->
				crash(n); has[n] = NODE(NOBODY, NEWEST)
			:: else ->
				sessions[0] = sessions[0] | BIT(n);
#if INCARNATIONS
				incarnation[n] = 1; used[n] = BIT(1);
#endif
				clear_links(n)
			fi;
			held[n] = NOWHERE; copy[n] = NONE; claim[n] = NONE; claim_of[n] = NOBODY;
			gift[n] = NONE; counted_in[n] = NONE; told[n] = NONE;
			pushed_to[n] = NOBODY; left_at[n] = NOBODY;
			n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < SERVERS -> server_is[n] = (n == 0 -> RUNS : UNBORN); n++
		:: else -> break
		od;
		born = 1;
		number[0] = 1;
		number[NOBODY] = (STRANGER -> 9 : 0);
		began[NOBODY] = NODE(NOBODY, 0);
		roster[0] = sessions[0];
		starts = 1; order[0] = 1
	}
	atomic {
		n = 0;
		do
		:: n < W -> run rank(n); n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < SERVERS -> run server(n); n++
		:: else -> break
		od
	}
	timeout -> d_step { judge_rest() }
}
