/* SPDX-License-Identifier: MIT */
/*
 * Grants, counting, commit, abandon and the end of sessions, as server/core, server/data and
 * client/core do them, for spin to try in every order. README.md says what is left out.
 */
#include "state.pml"
#include "ledger.pml"
#include "shard.pml"
#include "worker.pml"

/* What the control side says, in e_*: a worker that joins again, that starts, that leaves, that is
 * given up (its lease is over, or its connection closed). */
#define CONTROL(p) \
	:: p < P && p >= W && !tried[p] && member[RANK(p)] == ABSENT && !ended && !end_due -> \
		e_kind = JOIN; e_p = p \
	:: p < P && says[p] == START -> e_kind = START; e_p = p; says[p] = NOTHING \
	:: p < P && says[p] == LEAVE -> e_kind = LEAVE; e_p = p; e_seq = last_seq[p]; \
		says[p] = NOTHING \
	:: p < P && cur[RANK(p)] == p && member[RANK(p)] != ABSENT && failed && ended -> \
		e_kind = LOST; e_p = p \
	:: p < P && cur[RANK(p)] == p && member[RANK(p)] != ABSENT && losses_left > 0 && !ended -> \
		e_kind = LOST; e_p = p; losses_left-- \
	CONTROL_REST(p)
#if RESTS > 0
#define CONTROL_REST(p) \
	:: p < P && cur[RANK(p)] == p && rests_left > 0 && member[RANK(p)] != ABSENT && !ended -> \
		e_kind = REST; e_p = p; rests_left--
#else
#define CONTROL_REST(p)
#endif
/* Whether late workers are held changes at any moment: so `auto` may hold any of them. */
#if LATE_STARTS > 1
#define CONTROL_MOOD \
	:: moods_left > 0 && !ended -> e_kind = MOOD; e_p = 0; moods_left--
#else
#define CONTROL_MOOD
#endif
#if P > 3
#define CONTROL_ALL CONTROL_MOOD CONTROL(0) CONTROL(1) CONTROL(2) CONTROL(3)
#elif P > 2
#define CONTROL_ALL CONTROL_MOOD CONTROL(0) CONTROL(1) CONTROL(2)
#else
#define CONTROL_ALL CONTROL_MOOD CONTROL(0) CONTROL(1)
#endif

/* A link of shard s on which something has come, or whose put has been sent. */
#if P > 3
#define OF_LINKS(s, ready) ready(0, s) ready(1, s) ready(2, s) ready(3, s)
#elif P > 2
#define OF_LINKS(s, ready) ready(0, s) ready(1, s) ready(2, s)
#else
#define OF_LINKS(s, ready) ready(0, s) ready(1, s)
#endif
#if RAILS > 1
#define OLDEST_IS_DATA(p, s, rail) up[UP(p, s, rail)]?[DATA, _, _, _, _, _]
#define COME(p, s) \
	:: nempty(up[UP(p, s, 0)]) && (OLDEST_IS_DATA(p, s, 0) || \
		(IS(ABANDON_ONE_RAIL) && up[UP(p, s, 0)]?[ABANDON, _, _, _, _, _]) || \
		(nempty(up[UP(p, s, 1)]) && !OLDEST_IS_DATA(p, s, 1))) -> \
		e_p = p; e_kind = NOTHING; e_k = 0 \
	:: OLDEST_IS_DATA(p, s, 1) -> e_p = p; e_kind = NOTHING; e_k = 4
#else
#define COME(p, s) :: nempty(up[X(p, s)]) -> e_p = p; e_kind = NOTHING; e_k = 0
#endif
#define SENT(p, s) :: nempty(sent[X(p, s)]) -> e_p = p; e_kind = NOTHING; e_k = 1

#if S == 1

/* One thread, mst_server_step(): an event is judged, and what follows is done, before the next. */
proctype server()
{
end:	do
	:: atomic {
		if
		CONTROL_ALL
		OF_LINKS(0, COME)
		OF_LINKS(0, SENT)
		:: nempty(jobs[0]) -> e_kind = NOTHING; e_k = 2
		fi;
		d_step {
			if
			:: e_kind != NOTHING
			:: e_kind == NOTHING && (e_k == 0 || e_k == 4) ->
				e_s = e_k / 4;
				arrive(UP(e_p, 0, e_s), X(e_p, 0), e_p, 0)
			:: e_kind == NOTHING && e_k == 1 -> take_sent(X(e_p, 0), e_p, 0)
			:: e_kind == NOTHING && e_k == 2 -> work(0)
			fi;
			if
			:: e_kind != NOTHING -> ledger_run()
			:: else
			fi;
			do
			:: nempty(decisions[0]) -> execute(0)
			:: empty(decisions[0]) -> break
			od
		}
	   }
	od
}

#else

/* A shard with a thread of its own: what it reports and what is decided travels in between. */
proctype shard(byte me)
{
end:	do
	:: atomic {
		if
		OF_LINKS(me, COME)
		OF_LINKS(me, SENT)
		:: nempty(jobs[me]) -> e_kind = NOTHING; e_k = 2
		:: nempty(decisions[me]) -> e_kind = NOTHING; e_k = 3
		fi;
		d_step {
			if
			:: e_k == 0 || e_k == 4 ->
				e_s = e_k / 4;
				arrive(UP(e_p, me, e_s), X(e_p, me), e_p, me)
			:: e_k == 1 -> take_sent(X(e_p, me), e_p, me)
			:: e_k == 2 -> work(me)
			:: e_k == 3 -> execute(me)
			fi;
			if
			:: e_kind != NOTHING ->
				must(nfull(events[me]), BOUNDED);
				events[me]!e_kind, e_p, e_k, e_epoch, e_seq, e_tag, e_asks
			:: else
			fi
		}
	   }
	od
}

proctype ledger()
{
end:	do
	:: atomic {
		if
		CONTROL_ALL
		:: nempty(events[0]) -> e_kind = NOTHING; e_s = 0
		:: nempty(events[1]) -> e_kind = NOTHING; e_s = 1
		fi;
		d_step {
			if
			:: e_kind == NOTHING ->
				events[e_s]?e_kind, e_p, e_k, e_epoch, e_seq, e_tag, e_asks
			:: else
			fi;
			ledger_run()
		}
	   }
	od
}

#endif

/* All has come to rest: is everybody served, and everything given back? */
inline judge_rest()
{
	n = 0;
	do
	:: n < P ->
		must(done[n] || (n >= W && !tried[n]), WAITS);
		m = 0;
		do
		:: m < S ->
			must(freed[X(n, m)] || (n >= W && !over[X(n, m)] && !linked[X(n, m)]),
			     LEFTOVER);
			must(busy[X(n, m)] == 0, LEFTOVER);
			must(empty(up[UP(n, m, 0)]) && empty(up[UP(n, m, RAILS - 1)]), LEFTOVER);
			m++
		:: else -> break
		od;
		n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < NB -> must(holds[n] == 0, LEFTOVER); n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < S ->
		must(empty(jobs[n]) && empty(decisions[n]) && open_slots[n] == 0, LEFTOVER);
		must(committed[n] == newest, ORDER);
		n++
	:: else -> break
	od;
	must(ended, WAITS);
	n = 1;
	do
	:: n <= P * OPS ->
		/* Counted is final, unless the job has failed; and only what was counted is in. */
		must((verdict[n] == COUNTED) == ((ever_set & BIT(n)) != 0) || failed, SET);
		must((ever_set & BIT(n)) == 0 || verdict[n] == COUNTED, SET);
		/* A worker that leaves in peace has heard of all that it pushed. */
		m = (n - 1) / OPS;
		must(verdict[n] != 0 || lost[m] || (n - 1) % OPS >= last_seq[m], ONCE);
		n++
	:: else -> break
	od
}

/* Nothing goes on for ever: whatever happens, all come to an end. */
ltl comes_to_rest { <> (done[0] && done[1]) }

init
{
	d_step {
		n = 0;
		do
		:: n < W ->
			cur[n] = n; member[n] = STARTED; rostered[n] = 1;
			reads[n] = NONE; copies[n] = NONE;
			n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < NB -> buffer_version[n] = (n == 0 -> 0 : NONE); n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < W * K -> p_epoch[n] = 1; n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < P * K -> slot[n] = FREE; own_epoch[n] = 1; n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < P * S ->
			says[n / S] = NOTHING;
			if
			:: n / S < W ->
				session[(n % S) * W + n / S] = n / S;
				linked[n] = 1
			:: else -> held[n / S] = NONE
			fi;
			m = 0;
			do
			:: m < K && n / S < W -> epoch[n * K + m] = 1; m++
			:: else -> break
			od;
			/* Version 0 is what everybody has been answered with already. */
			if
			:: MAPS && n / S < W ->
				uses[n] = 1;
				held_in_place[n / S] = 1;
				reads[n / S] = 0;
				holds[0] = (n % S == 0 -> holds[0] + 1 : holds[0])
			:: else
			fi;
			n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < S * W -> session[n] = n % W; n++
		:: else -> break
		od
	}
	atomic {
		n = 0;
		do
		:: n < P -> run worker(n); n++
		:: else -> break
		od;
#if S == 1
		run server()
#else
		run shard(0);
		run shard(1);
		run ledger()
#endif
	}
	timeout -> d_step { judge_rest() }
}
