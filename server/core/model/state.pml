/* SPDX-License-Identifier: MIT */
/*
 * What the model has: its figures, its switches for mutants, the state of ledger, shards, links and
 * workers. A process p is one session of rank RANK(p): (rank, incarnation) in the code. Session p
 * is of the first incarnation for p < W; every further one joins when the one before has ended.
 *
 * Names are those of the code where it has one. README.md says which function is which.
 */

/* Figures, set by run.py. */
#ifndef W
#define W 2         /* ranks */
#endif
#ifndef P
#define P 2         /* sessions, that is processes, in all */
#endif
#ifndef S
#define S 1         /* shards: 1 is the server's one thread, 2 run beside the ledger */
#endif
#ifndef K
#define K 1         /* slots of a session */
#endif
#ifndef NB
#define NB 3        /* version buffers */
#endif
#ifndef OPS
#define OPS 2       /* contributions of a session, at most */
#endif
#ifndef OTHERS
#define OTHERS OPS  /* of any but the first */
#endif
#ifndef QUORUM
#define QUORUM 0    /* 0: all of the roster */
#endif
#ifndef REPEATS
#define REPEATS 0   /* 1: released at the push, may contribute again to a step; 0: at the commit */
#endif
#ifndef WINDOW
#define WINDOW 0    /* a tag may be this many versions old */
#endif
#ifndef MAPS
#define MAPS 0      /* 1: shared memory, 0: puts that travel */
#endif
#ifndef LOSSES
#define LOSSES 1    /* sessions that are lost, at most */
#endif
#ifndef ABANDONS
#define ABANDONS 1  /* contributions given up with data on their way, at most */
#endif
#ifndef KEEPS
#define KEEPS 1     /* pushes that do not ask, at most */
#endif
#ifndef PARTIALS
#define PARTIALS 0     /* a shard's buffers for sums of ranks that contribute again; 0 or 1 */
#endif
#ifndef COMMITS
#define COMMITS 0   /* the job ends after these; 0: when the last worker leaves */
#endif

#ifndef LATE_STARTS
#define LATE_STARTS 0 /* 1: the ask of a late contribution is held until the next commit; more:
		       * and it changes so often, less one, whether any is held */
#endif
#ifndef RESTS
#define RESTS 0     /* how often a worker is told to rest, or to return, at most */
#endif

#ifndef RAILS
#define RAILS 1     /* of a link, each in order for itself */
#endif
#ifndef PIECES
#define PIECES 2 /* a gradient's bytes, and a version's, come and go in this number of pieces */
#endif
#define VERSIONS (P * OPS + 1)
#define NOBODY 255
#define NONE 255

#define RANK(p) ((p) % W)
#define SHARDS_ALL ((1 << S) - 1)
#define X(p, s) ((p) * S + (s))            /* a link */
#define UP(p, s, rail) (X(p, s) * RAILS + (rail))
#define SLOT(p, s, k) (X(p, s) * K + (k))  /* a slot of one shard */
#define OWN(p, k) ((p) * K + (k))          /* the same slot as its worker sees it */
#define PEND(r, k) ((r) * K + (k))         /* and as the ledger does */
#define CELL(p, s, k, i) (SLOT(MEMORY(p), s, k) * PIECES + (i))
#define PAGE(s, b, i) (((s) * NB + (b)) * PIECES + (i))
#define ID(p, seq) ((p) * OPS + (seq)) /* a contribution; from 1 on */
#define NO_SEQ 0 /* of bytes that were given up: nobody's */
#define BYTES_OF(p, seq) (seq == NO_SEQ -> 0 : ID(p, seq))
#define BIT(id) (1 << ((id) - 1))

/* Mutants: -DMUTANT=NAME turns one of these on. README.md has what each breaks. */
#define NOT_MUTATED 0
#define REGRANT_EARLY 1
#define COUNT_EARLY 2
#define FORGET_INCARNATION 3
#define FREE_EARLY 4
#define NO_DETACH 5
#define SAME_MEMORY 6
#define REUSE_HELD 7
#define WORD_MISSING 8
#define JUDGE_TWICE 9
#define COMMIT_TWICE 10
#define HEADER_FIRST 11
#define ABANDON_ONE_RAIL 12
#define ABANDON_ONE_SHARD 13
#define ANSWERED_ANY 14
#define NO_SETTLE 15
#define ALL_WAIT 16
#define LEAVE_AT_ONCE 17
#define LOSE_COUNTED 18
#define IN_PLACE_ALWAYS 19
#define FINISH_KEEPS 20
#define SET_STAYS 21
#define VERDICT_UNHEARD 22
#define OUT_OF_ORDER 23
#define ADVISE_EACH 24
#define LATE_KEPT 25
#define REST_FORGOTTEN 26
#ifndef MUTANT
#define MUTANT NOT_MUTATED
#endif
#define IS(mutant) (MUTANT == mutant)

/* Where session p's inbound region lies: memory of its own. */
#if IS(SAME_MEMORY)
#define MEMORY(p) RANK(p)
#else
#define MEMORY(p) (p)
#endif

/* What is promised. A promise is a name in the text of the assertion that fails; always false. */
#define must(condition, promise) assert((condition) || promise)
hidden byte EXACT;    /* what is summed is what the header announced; no write lands meanwhile */
hidden byte ONCE;     /* every contribution gets exactly one verdict */
hidden byte SET;      /* a version is the sum of exactly what its record names */
hidden byte ORDER;    /* one commit per version, versions in order, on every shard */
hidden byte FREED;    /* freed memory is neither written nor read */
hidden byte HELD;     /* a version that is being read or sent is not overwritten */
hidden byte ROOM;     /* a commit that is due never waits for a worker */
hidden byte WAITS;    /* nobody waits for ever */
hidden byte LEFTOVER; /* at the end nothing is held, queued or still allocated */
hidden byte TRUST;    /* a worker that keeps to the protocol is never taken for one that breaks it */
hidden byte BOUNDED;  /* no queue overflows */

/* What a search that is worth its name must come by; run.py sees to it that each is printed. */
#define reach(what) c_code { static int once; \
	if (!once) { once = 1; fprintf(stderr, "reached %s\n", #what); } }
c_decl {
\#include <stdio.h>
}

/* Messages. */
mtype = { DATA, HEADER, ABANDON, ASK }                 /* worker to shard */
mtype = { GRANT, TOLD, ANSWER, FINISHED, HINT }      /* shard to worker */
mtype = { FULL, ABANDONED, ASKED, ANSWERED }           /* shard to ledger */
mtype = { JOIN, START, LEAVE, LOST, REST, MOOD, NOTHING } /* control side to ledger */
mtype = { COUNT, VERDICT, REGRANT, COMMIT, RELEASE, EVICT, FINISH, LINK } /* ledger to shard */
mtype = { COUNTED, LATE, CANCELLED, REFUSED }          /* verdicts */
mtype = { PARTIAL }                                       /* work of a shard, beside COMMIT, RELEASE */
mtype = { KEEP, IN_PLACE, COPIED }                     /* where a result is */
mtype = { ABSENT, JOINED, STARTED, LEAVING }           /* a member */
mtype = { FREE, FILLING, SPENT }                       /* a slot, to its worker */

/* ---- the ledger ---- */
byte cur[W];         /* the rank's present session */
mtype member[W];
byte judged[W], leave_seq[W], first_version[W], given[W], step_count[W];
bit rostered[W], asks[W], rests[W];
byte late[W];        /* the ask of a late contribution: 1 has not been looked at, 2 is held */
byte reads[W], copies[W], copied[W], ask_number[W], copy_number[W];
byte p_full[W * K], p_abandoned[W * K], p_epoch[W * K], p_seq[W * K], p_tag[W * K];
bit p_asks[W * K];
byte buffer_version[NB], holds[NB];
byte newest;
int open_set;        /* contributions counted in the open step */
byte open_count;
bit end_due, ended, failed;
byte losses_left = LOSSES, rests_left = RESTS;
bit may_hold = 1;
byte moods_left = LATE_STARTS - (LATE_STARTS > 0);

/* What has happened, for the promises alone. */
mtype verdict[P * OPS + 1];
int record[VERSIONS]; /* by version */
int ever_set;         /* in any version */
bit tried[P], lost[P];

/* ---- the shards ---- */
byte session[S * W];
bit is_full[P * S * K], to_read[P * S * K];
byte epoch[P * S * K], next_epoch[P * S * K], full_id[P * S * K];
byte busy[P * S], unsent[P * S];
bit over[P * S], freed[P * S], linked[P * S], answering[P * S];
int open_slots[S];    /* counted, not in a commit yet; bits of OWN() */
bit partial_taken[S];
byte partial_rank[S];    /* + 1: whose sum of the open step it is; 0: a commit's, or nobody's */
int partial_set[S * PIECES];
byte newest_buffer[S], cursor[S], committed[S];
bit finish_said[S];

/* ---- memory, links ---- */
byte memory[P * S * K * PIECES];  /* whose bytes lie there: an ID() */
byte version_at[S * NB * PIECES]; /* which version's bytes lie there */
bit ended_word[P];                /* in the worker's own memory */
byte uses[P * S];                 /* buffer + 1 that is read in place, or on its way, by p's link */
#define UP_MAX (K * (PIECES + 1) + 2)
#define DOWN_MAX (2 * K + 3)
chan up[P * S * RAILS] = [UP_MAX] of { mtype, byte, byte, byte, byte, bit };
chan down[P * S] = [DOWN_MAX] of { mtype, byte, byte, byte, mtype };
chan sent[P * S] = [2] of { byte };

/* ---- between ledger and shards ---- */
#define DECISIONS_MAX (W * (2 * K + 4) + 2)
#define JOBS_MAX (P + W + 2 + PARTIALS * P * K)
#define PARTIAL_BIT (1 << 16) /* in a commit's set of slots: it takes the partial sum too */
chan decisions[S] = [DECISIONS_MAX] of { mtype, byte, byte, byte, byte, mtype };
chan events[S] = [P * (K + 1) + 1] of { mtype, byte, byte, byte, byte, byte, bit };
chan jobs[S] = [JOBS_MAX] of { mtype, byte, byte, byte, byte, mtype, int };

/* ---- the workers, as far as others' promises look at them ---- */
byte held[P];        /* version */
bit held_in_place[P];
byte held_buffer[P];
mtype slot[P * K];
byte own_epoch[P * K], granted_by[P * K];
mtype says[P];       /* on its control connection */
byte last_seq[P];
bit done[P];
byte abandons_left = ABANDONS, keeps_left = KEEPS;

/* Scratch of one indivisible step, not part of the state: always written before it is read. Spin
 * takes a receive into it back rightly only as part of a d_step. */
hidden byte e_kind;
hidden byte e_p, e_s, e_k, e_seq, e_tag, e_epoch;
hidden byte e_asks;
hidden byte r, k, i, n, n2, m, b, x, c, q, to;
hidden byte v, d_kind, d_where, j_kind, j_where;
hidden byte d_p, d_a, d_b, d_c, j_p, j_version, j_buffer, j_number;
hidden int set, j_slots;
hidden byte any, found, again, partial_starts;
hidden byte h;
