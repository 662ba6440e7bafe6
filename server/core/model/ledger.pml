/* SPDX-License-Identifier: MIT */
/*
 * The ledger: server/core/ledger/, with its folders state and phases. One event goes in, as e_*;
 * decisions come out, to every shard. All of it is one indivisible step, as in the code.
 */

inline decide(kind, p, a1, b1, c1, where)
{
	must(nfull(decisions[0]), BOUNDED);
	decisions[0]!kind, p, a1, b1, c1, where;
#if S > 1
	must(nfull(decisions[1]), BOUNDED);
	decisions[1]!kind, p, a1, b1, c1, where;
#endif
}

#define TAKES_PART(r) (member[r] == STARTED || member[r] == LEAVING)
#define MISSING(r) (rostered[r] && step_count[r] == 0)
#define BUFFER_FREE(b) (buffer_version[b] != newest && (holds[b] == 0 || IS(REUSE_HELD)))

/* mst_step_view(): x = roster, m = missing. */
inline step_view()
{
	x = 0; m = 0; n = 0;
	do
	:: n < W ->
		x = x + rostered[n];
		m = m + MISSING(n);
		n++
	:: else -> break
	od
}

/* mst_rule_needed(), after step_view(). */
#if QUORUM == 0
#define NEEDED (open_count + m)
#elif REPEATS
#define NEEDED (x > 0 -> QUORUM : open_count)
#else
#define NEEDED (QUORUM < open_count + m -> QUORUM : open_count + m)
#endif
#define STEP_DUE \
	(!ended && open_count > 0 && (end_due -> !failed : open_count >= NEEDED))

/* mst_store_take(): b, or NB where none is free. */
inline find_free()
{
	b = 0;
	do
	:: b < NB && !BUFFER_FREE(b) -> b++
	:: else -> break
	od
}

/* mst_store_find(): the newest version is always kept. */
inline find_newest()
{
	b = 0;
	do
	:: b < NB && buffer_version[b] != newest -> b++
	:: else -> break
	od;
	must(b < NB, HELD)
}

inline let_go(hold)
{
	if
	:: hold != NONE ->
		must(holds[hold] > 0, HELD);
		holds[hold]--;
		hold = NONE
	:: else
	fi
}

/* mst_step_open() */
inline step_open()
{
	n = 0;
	do
	:: n < W ->
		rostered[n] = (TAKES_PART(n) && !rests[n]);
		step_count[n] = 0;
		n++
	:: else -> break
	od;
	if
	:: !IS(SET_STAYS) -> open_set = 0
	:: else
	fi;
	open_count = 0
}

/* mst_step_revive() */
inline step_revive()
{
	step_view();
	if
	:: !ended && open_count == 0 && m == 0 && x == 0 ->
		n = 0;
		do
		:: n < W ->
			if
			:: TAKES_PART(n) && !rests[n] ->
				reach(step_revived);
				rostered[n] = 1; first_version[n] = newest; again = 1
			:: else
			fi;
			n++
		:: else -> break
		od
	:: else
	fi
}

/* Is some buffer held by a copy that the shard makes, and which so ends by itself? */
inline find_copy()
{
	found = 0;
	n = 0;
	do
	:: n < W -> found = found || (MAPS && copies[n] != NONE); n++
	:: else -> break
	od
}

/* Late starts: server/core/ledger/state/late.c. */

/* spares(), after step_view(): h = asks that are held, and @more. */
inline count_held(more)
{
	h = more;
	n = 0;
	do
	:: n < W -> h = h + (late[n] == 2); n++
	:: else -> break
	od
}
#if QUORUM == 0
#define SPARES (h == 0)
#else
#define SPARES (m >= h && open_count + m - h >= NEEDED)
#endif

/* mst_late_release_all() */
inline late_release_all()
{
	n = 0;
	do
	:: n < W -> late[n] = 0; n++
	:: else -> break
	od
}

/* mst_late_release_if_needed() */
inline late_release_if_needed()
{
	step_view();
	count_held(0);
	if
	:: h > 0 && !SPARES && !IS(LATE_KEPT) -> reach(held_is_needed); late_release_all()
	:: else
	fi
}

/* mst_late_holds() for rank r. `auto` holds some, and the choice is free here. */
inline late_look()
{
	step_view();
	count_held(1);
	if
	:: late[r] == 1 && may_hold && !REPEATS && !ended && MISSING(r) && given[r] != newest &&
	   SPARES -> reach(late_is_held); late[r] = 2
	:: late[r] == 1 && !(may_hold && !REPEATS && !ended && MISSING(r) && given[r] != newest &&
	   SPARES) -> late[r] = 0
	:: else
	fi
}

/* mst_step_commit_if_due() */
inline commit_if_due()
{
	step_view();
	if
	:: STEP_DUE ->
		find_free();
		if
		:: b < NB ->
			newest++;
			buffer_version[b] = newest;
			must((ever_set & open_set) == 0, SET);
			record[newest] = open_set;
			ever_set = ever_set | open_set;
			decide(COMMIT, 0, newest, b, 0, NOTHING);
			if
			:: IS(COMMIT_TWICE) -> decide(COMMIT, 0, newest, b, 0, NOTHING)
			:: else
			fi;
			late_release_all();
			step_open();
			again = 1
		:: else ->
			find_copy();
			must(found, ROOM);
			reach(commit_waits_for_copy)
		fi
	:: else
	fi
}

/* judge_end(), mst_life_finish_if_due() */
inline finish_if_due()
{
	if
	:: COMMITS > 0 && newest >= COMMITS && !end_due && !ended -> end_due = 1
	:: else
	fi;
	if
	:: end_due && !ended && (failed || open_count == 0) ->
		ended = 1;
		if
		:: failed && open_count > 0 -> reach(fails_with_counted)
		:: failed && open_count == 0 -> reach(fails)
		:: else -> reach(finishes)
		fi;
		decide(FINISH, 0, newest, failed, 0, NOTHING);
		again = 1
	:: else
	fi
}

/* mst_store_spare() of buffer b, as x. */
inline find_spare()
{
	x = NB - 1;
	n = 0;
	do
	:: n < NB ->
		x = (n != b && holds[n] > 0 && x > 0 -> x - 1 : x);
		n++
	:: else -> break
	od
}

/* may_go_on() */
#if REPEATS
#define OWES(r) 0
#else
#define OWES(r) (step_count[r] > 0)
#endif
#define MAY_GO_ON(r) \
	(TAKES_PART(r) && (ended || (rostered[r] && first_version[r] <= newest && \
	!OWES(r) && !(IS(ALL_WAIT) && given[r] == newest))))

/* answer() for rank r: place_of(), must_wait(), hold(). */
inline answer()
{
	find_newest();
	find_spare();
	v = COPIED;
	if
	:: given[r] == newest -> v = KEEP
	:: else ->
		if
		:: MAPS && (x >= 2 || IS(IN_PLACE_ALWAYS)) -> v = IN_PLACE
		:: else
		fi
	fi;
	if
	:: v == COPIED && !MAPS && !ended && x < 2 && !IS(IN_PLACE_ALWAYS) ->
		reach(ask_waits_for_buffer)
	:: else ->
		if
		:: v == KEEP -> reach(answered_keep)
		:: v == IN_PLACE -> reach(answered_in_place); reads[r] = b; holds[b]++
		:: v == COPIED ->
			reach(answered_copied);
			copies[r] = b; copy_number[r] = ask_number[r]; copied[r] = 0; holds[b]++
		fi;
		decide(RELEASE, cur[r], newest, b, ask_number[r], v);
		asks[r] = 0;
		given[r] = newest;
		again = 1
	fi
}

/* let_go_of_old() */
inline let_go_of_old(rank)
{
	if
	:: asks[rank] && given[rank] != newest -> let_go(reads[rank])
	:: else
	fi
}

/* mst_ask_judge_all() */
inline ask_judge_all()
{
	r = 0;
	do
	:: r < W -> let_go_of_old(r); r++
	:: else -> break
	od;
	r = 0;
	do
	:: r < W ->
		if
		:: asks[r] && MAY_GO_ON(r) ->
			late_look();
			if
			:: late[r] == 0 || ended -> answer()
			:: else
			fi
		:: else -> late[r] = 0
		fi;
		r++
	:: else -> break
	od;
	r = 0
}

/* mst_settle() */
inline settle()
{
	again = 1;
	do
	:: again ->
		again = 0;
		step_revive();
		commit_if_due();
		late_release_if_needed();
		finish_if_due();
		ask_judge_all()
	:: else -> break
	od
}

/* mst_ask_take(); an ask that could not be taken would end an honest worker's session. */
inline ask_take(rank)
{
	must(!asks[rank] && held[cur[rank]] == given[rank], TRUST);
	asks[rank] = 1;
	ask_number[rank]++;
	let_go_of_old(rank);
	let_go(copies[rank])
}

/* mst_member_regrant() and the decision. */
inline regrant(rank, index)
{
	p_full[PEND(rank, index)] = 0;
	p_abandoned[PEND(rank, index)] = 0;
	p_seq[PEND(rank, index)] = 0;
	p_tag[PEND(rank, index)] = 0;
	p_asks[PEND(rank, index)] = 0;
	p_epoch[PEND(rank, index)]++;
	decide(REGRANT, cur[rank], index, p_epoch[PEND(rank, index)], 0, NOTHING)
}

inline tell(rank, index, what)
{
	c = ID(cur[rank], p_seq[PEND(rank, index)]);
	must(verdict[c] == 0, ONCE);
	verdict[c] = what;
	decide(VERDICT, cur[rank], index, p_seq[PEND(rank, index)], 0, what)
}

/* What no longer means anything takes one value, so that states alike are one to spin. */
inline forget(rank)
{
	judged[rank] = 0; leave_seq[rank] = 0; first_version[rank] = 0; given[rank] = 0;
	ask_number[rank] = 0; copy_number[rank] = 0; copied[rank] = 0;
	k = 0;
	do
	:: k < K ->
		p_full[PEND(rank, k)] = 0;
		p_abandoned[PEND(rank, k)] = 0;
		p_epoch[PEND(rank, k)] = 1;
		p_seq[PEND(rank, k)] = 0;
		p_tag[PEND(rank, k)] = 0;
		p_asks[PEND(rank, k)] = 0;
		k++
	:: else -> break
	od
}

/* Rest: mst_life_rest(), wake_all(). */

/* x = how many take part and do not rest. */
inline count_awake()
{
	x = 0; n = 0;
	do
	:: n < W -> x = x + (TAKES_PART(n) && !rests[n]); n++
	:: else -> break
	od
}

inline wake_if_all_rest()
{
	count_awake();
	n = 0;
	do
	:: n < W && x == 0 && rests[n] -> reach(woken_by_a_loss); rests[n] = 0; n++
	:: n < W && !(x == 0 && rests[n]) -> n++
	:: else -> break
	od
}

inline rest_or_return()
{
	count_awake();
	if
	:: rests[r] -> reach(returns); rests[r] = 0
	:: !rests[r] && !ended && TAKES_PART(r) && x > 1 ->
		reach(told_to_rest);
		rests[r] = 1;
		rostered[r] = 0
	:: else
	fi
}

/* Ends the session of rank r: end_session(), mst_life_lose(). In peace: it leaves. */
inline end_session()
{
	must(member[r] == LEAVING || lost[cur[r]], TRUST);
	if
	:: member[r] == JOINED -> reach(lost_before_start)
	:: member[r] == LEAVING && lost[cur[r]] -> reach(lost_while_leaving)
	:: step_count[r] > 0 -> reach(ends_when_counted)
	:: else
	fi;
	/* mst_judge_cancel(), in order of seq */
	n = judged[r] + 1;
	do
	:: n <= judged[r] + K ->
		k = 0;
		do
		:: k < K ->
			if
			:: p_full[PEND(r, k)] != 0 && p_seq[PEND(r, k)] == n ->
				reach(cancelled);
				tell(r, k, CANCELLED)
			:: else
			fi;
			k++
		:: else -> break
		od;
		n++
	:: else -> break
	od;
	let_go(reads[r]);
	let_go(copies[r]);
	decide(EVICT, cur[r], 0, 0, 0, NOTHING);
	any = TAKES_PART(r);
	found = (member[r] == LEAVING);
	member[r] = ABSENT;
	rostered[r] = 0;
	asks[r] = 0;
	late[r] = 0;
	rests[r] = 0;
	forget(r);
	if
	:: any && !ended ->
		x = 0; n = 0;
		do
		:: n < W -> x = x + TAKES_PART(n); n++
		:: else -> break
		od;
		if
		:: x == 0 && !end_due -> end_due = 1; failed = !found
		:: x > 0 && !end_due && !IS(REST_FORGOTTEN) -> wake_if_all_rest()
		:: else
		fi
	:: else
	fi
}

/* mst_life_join(), mst_member_admit(); refused once the end is due. */
inline admit()
{
	tried[e_p] = 1;
	if
	:: !ended && !end_due && member[r] == ABSENT ->
		reach(rejoins);
		cur[r] = e_p;
		member[r] = JOINED;
		given[r] = NONE
	:: else -> done[e_p] = 1
	fi
}

/* mst_judge_full(), mst_member_report_full() */
inline report_full()
{
	q = PEND(r, e_k);
	must(e_seq > judged[r] && e_seq <= judged[r] + K, TRUST);
	must(e_epoch == p_epoch[q] && p_abandoned[q] == 0, TRUST);
	must((p_full[q] & (1 << e_s)) == 0, TRUST);
	must(p_full[q] == 0 || (p_seq[q] == e_seq && p_tag[q] == e_tag), TRUST);
	p_seq[q] = e_seq;
	p_tag[q] = e_tag;
	p_asks[q] = e_asks;
	p_full[q] = p_full[q] | (1 << e_s)
}

/* mst_judge_abandoned(), mst_member_report_abandoned() */
inline report_abandoned()
{
	q = PEND(r, e_k);
	must(e_epoch == p_epoch[q] && p_full[q] == 0, TRUST);
	must((p_abandoned[q] & (1 << e_s)) == 0, TRUST);
	p_abandoned[q] = p_abandoned[q] | (1 << e_s);
	if
	:: p_abandoned[q] == SHARDS_ALL || IS(ABANDON_ONE_SHARD) ->
		reach(abandoned);
		regrant(r, e_k)
	:: else
	fi
}

/* mst_ask_answered() */
inline report_answered()
{
	if
	:: copies[r] != NONE && (e_seq == copy_number[r] || IS(ANSWERED_ANY)) &&
	   (copied[r] & (1 << e_s)) == 0 ->
		reach(copy_done);
		copied[r] = copied[r] | (1 << e_s);
		if
		:: copied[r] == SHARDS_ALL -> copied[r] = 0; let_go(copies[r])
		:: else
		fi
	:: else -> reach(copy_done_after_next_ask)
	fi
}

/* mst_ledger_handle() up to mst_settle(); sets `to` to the rank whose session is to end. */
inline take_event()
{
	r = RANK(e_p);
	to = NOBODY;
	if
	:: e_kind == JOIN -> admit()
	:: e_kind == MOOD -> may_hold = !may_hold
	:: e_kind != JOIN && e_kind != MOOD && (member[r] == ABSENT || (cur[r] != e_p && !IS(FORGET_INCARNATION))) ->
		if
		:: member[r] != ABSENT -> reach(event_of_former_incarnation)
		:: else -> reach(event_of_nobody)
		fi
	:: else ->
		if
		:: e_kind == FULL -> report_full()
		:: e_kind == ABANDONED -> report_abandoned()
		:: e_kind == ASKED -> ask_take(r)
		:: e_kind == ANSWERED -> report_answered()
		:: e_kind == START ->
			decide(LINK, e_p, 0, 0, 0, NOTHING);
			must(!asks[r], TRUST);
			asks[r] = 1;
			ask_number[r] = 1;
			member[r] = STARTED;
			first_version[r] = newest + 1
		:: e_kind == LEAVE ->
			must(member[r] == STARTED, TRUST);
			member[r] = LEAVING;
			leave_seq[r] = e_seq;
			if
			:: judged[r] < e_seq -> reach(leave_overtakes_header)
			:: else
			fi;
			to = (judged[r] >= e_seq || IS(LEAVE_AT_ONCE) -> r : NOBODY)
		:: e_kind == LOST -> lost[e_p] = 1; to = r
		:: e_kind == REST -> rest_or_return()
		fi
	fi
}

/* mst_member_next(): rank r and slot k, or r = W. */
#if IS(COUNT_EARLY)
#define REPORTED(set) (set != 0)
#else
#define REPORTED(set) (set == SHARDS_ALL)
#endif
inline find_reported()
{
	r = 0; k = 0;
	do
	:: r < W && !(member[r] != ABSENT && REPORTED(p_full[PEND(r, k)]) &&
		      p_seq[PEND(r, k)] == judged[r] + 1) ->
		k++;
		if
		:: k == K -> k = 0; r++
		:: else
		fi
	:: else -> break
	od
}

/* verdict_of(), count() */
inline find_verdict()
{
	if
	:: !TAKES_PART(r) -> v = REFUSED
	:: TAKES_PART(r) && ended -> reach(judged_after_the_end); v = CANCELLED
	:: TAKES_PART(r) && !ended && (newest - p_tag[PEND(r, k)] > WINDOW ||
				       (!REPEATS && step_count[r] > 0)) ->
		v = LATE;
		if
		:: newest - p_tag[PEND(r, k)] > WINDOW -> reach(late)
		:: else -> reach(late_for_it_is_in_the_step)
		fi
	:: else -> v = COUNTED; reach(counted)
	fi
}

/* judge() */
inline judge()
{
	find_verdict();
	if
	:: v == COUNTED ->
		open_set = open_set | BIT(ID(cur[r], p_seq[PEND(r, k)]));
		open_count++;
		step_count[r]++;
		decide(COUNT, cur[r], k, 0, 0, NOTHING)
	:: else
	fi;
	tell(r, k, v);
	if
	:: !IS(JUDGE_TWICE) ->
		judged[r] = p_seq[PEND(r, k)];
		any = p_asks[PEND(r, k)];
		regrant(r, k)
	:: else
	fi;
	if
	:: any -> ask_take(r); late[r] = (LATE_STARTS && v == LATE)
	:: else
	fi;
	to = (member[r] == LEAVING && judged[r] >= leave_seq[r] -> r : NOBODY)
}

/* mst_ledger_handle(), then mst_ledger_next() until it says false. */
inline ledger_run()
{
	take_event();
	do
	:: true ->
		any = 0;
		if
		:: to != NOBODY -> r = to; end_session(); any = IS(NO_SETTLE); to = NOBODY
		:: else
		fi;
		if
		:: !any -> settle()
		:: else
		fi;
		step_view();
		find_reported();
		if
		:: !STEP_DUE && r < W -> judge()
		:: STEP_DUE && r < W -> reach(judging_waits_for_commit); break
		:: else -> break
		fi
	od;
	r = 0; k = 0
}
