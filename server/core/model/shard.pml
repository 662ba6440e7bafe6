/* SPDX-License-Identifier: MIT */
/*
 * A shard: server/data/{aggregator,task,shard,send}.c. It reads what arrives, executes decisions in
 * their order, and works its queue off piece by piece; what it has to report is left in e_*.
 */

inline put(kind, p, s, a1, b1, c1, what)
{
	if
	:: !over[X(p, s)] ->
		must(nfull(down[X(p, s)]), BOUNDED);
		down[X(p, s)]!kind, a1, b1, c1, what
	:: else
	fi
}

inline report(kind, p, s)
{
	e_kind = kind; e_p = p; e_s = s
}

/* What no longer means anything takes one value, so that states alike are one to spin. Memory that
 * is mapped keeps its bytes, and what they may still be read for. */
inline forget_slots(p, s)
{
	n2 = 0;
	do
	:: n2 < K * PIECES && !MAPS ->
		memory[CELL(p, s, n2 / PIECES, n2 % PIECES)] = 0;
		is_full[SLOT(p, s, n2 / PIECES)] = 0;
		full_id[SLOT(p, s, n2 / PIECES)] = 0;
		epoch[SLOT(p, s, n2 / PIECES)] = 0;
		next_epoch[SLOT(p, s, n2 / PIECES)] = 0;
		n2++
	:: else -> break
	od
}

/* tell_if_over(): the control side frees the memory of a session that nothing refers to. */
inline free_if_over(p, s)
{
	if
	:: over[X(p, s)] && (busy[X(p, s)] == 0 || IS(FREE_EARLY)) ->
		freed[X(p, s)] = 1;
		forget_slots(p, s)
	:: else
	fi
}

inline unbusy(p, s)
{
	must(busy[X(p, s)] > 0, TRUST);
	busy[X(p, s)]--;
	free_if_over(p, s)
}

/* grant_if_read() */
inline grant_if_read(p, s, k)
{
	if
	:: next_epoch[SLOT(p, s, k)] != 0 && (!to_read[SLOT(p, s, k)] || IS(REGRANT_EARLY)) ->
		is_full[SLOT(p, s, k)] = 0;
		full_id[SLOT(p, s, k)] = (to_read[SLOT(p, s, k)] -> full_id[SLOT(p, s, k)] : 0);
		epoch[SLOT(p, s, k)] = next_epoch[SLOT(p, s, k)];
		next_epoch[SLOT(p, s, k)] = 0;
		put(GRANT, p, s, k, epoch[SLOT(p, s, k)], 0, NOTHING)
	:: next_epoch[SLOT(p, s, k)] != 0 && to_read[SLOT(p, s, k)] -> reach(grant_waits_for_read)
	:: else
	fi
}

/* mst_shard_read_done() of slot q, an OWN(). */
inline read_done(s, q)
{
	to_read[SLOT((q) / K, s, (q) % K)] = 0;
	grant_if_read((q) / K, s, (q) % K);
	unbusy((q) / K, s)
}

/* ---- arrivals ---- */

/* The oldest put on a rail of link x is over: bytes land, or an immediate is polled, which every
 * rail has brought: mst_aggregator_arrived(). */
inline arrive(from, x, p, s)
{
	up[from]?d_kind, d_a, d_b, d_c, e_tag, e_asks;
#if RAILS > 1
	if
	:: d_kind != DATA && !(d_kind == ABANDON && IS(ABANDON_ONE_RAIL)) ->
		up[from + 1]?d_kind, _, _, _, _, _
	:: else
	fi;
#endif
	i = SLOT(p, s, d_a);
	if
	:: d_kind == DATA ->
		must(!freed[x], FREED);
		must(!is_full[i] && !to_read[i], EXACT);
		memory[CELL(p, s, d_a, d_b)] = BYTES_OF(p, d_c)
	:: d_kind == HEADER && !over[x] -> /* read_header() */
		must(!is_full[i] && d_b == epoch[i], TRUST);
		must(!(e_asks && answering[x]), TRUST);
		is_full[i] = 1;
		full_id[i] = ID(p, d_c);
		e_k = d_a; e_epoch = d_b; e_seq = d_c;
		report(FULL, p, s)
	:: d_kind == ABANDON && !over[x] -> /* read_abandon() */
		must(!is_full[i] && d_b == epoch[i], TRUST);
		e_k = d_a; e_epoch = d_b;
		report(ABANDONED, p, s)
	:: d_kind == ASK && !over[x] -> /* read_ask() */
		must(!answering[x], TRUST);
		report(ASKED, p, s)
	:: else -> reach(arrival_of_ended_session)
	fi
}

/* The transport reports a copied result as sent: mst_aggregator_sent(). */
inline take_sent(x, p, s)
{
	sent[x]?e_seq;
	must(unsent[x] > 0, TRUST);
	unsent[x]--;
	unbusy(p, s);
	report(ANSWERED, p, s)
}

/* ---- decisions ---- */

/* evict(), mst_shard_forget_sends(). Before its links were up there is nothing to end here. Memory
 * that is mapped stays the worker's: what is in it can still be found. */
inline evict(p, s)
{
	x = X(p, s);
	if
	:: !IS(WORD_MISSING) -> ended_word[p] = 1
	:: else
	fi;
	over[x] = 1;
	if
	:: session[s * W + RANK(p)] == p -> session[s * W + RANK(p)] = NOBODY
	:: else
	fi;
#if !MAPS
	if
	:: !IS(NO_DETACH) ->
		linked[x] = 0;
		do
		:: nempty(up[UP(p, s, 0)]) -> up[UP(p, s, 0)]?d_kind, _, _, _, _, _
		:: empty(up[UP(p, s, 0)]) -> break
		od;
		do
		:: nempty(up[UP(p, s, RAILS - 1)]) -> up[UP(p, s, RAILS - 1)]?d_kind, _, _, _, _, _
		:: empty(up[UP(p, s, RAILS - 1)]) -> break
		od
	:: else
	fi;
	do
	:: nempty(down[x]) -> down[x]?d_kind, _, _, _, _
	:: empty(down[x]) -> break
	od;
	do
	:: nempty(sent[x]) -> sent[x]?_
	:: empty(sent[x]) -> break
	od;
	uses[x] = 0;
#endif
	must(busy[x] >= unsent[x], TRUST);
	busy[x] = busy[x] - unsent[x];
	unsent[x] = 0;
	if
	:: IS(LOSE_COUNTED) ->
		k = 0;
		do
		:: k < K ->
			if
			:: open_slots[s] & (1 << OWN(p, k)) ->
				open_slots[s] = open_slots[s] ^ (1 << OWN(p, k));
				read_done(s, OWN(p, k))
			:: else
			fi;
			k++
		:: else -> break
		od
	:: else
	fi;
	if
	:: busy[x] > 0 -> reach(freed_after_last_read)
	:: else
	fi;
	free_if_over(p, s)
}

/* finish(), mst_open_step_drop() */
inline finish(s, last, with_error)
{
	finish_said[s] = 1;
	n = 0;
	do
	:: n < W ->
		m = session[s * W + n];
		if
		:: m != NOBODY && with_error -> ended_word[m] = 1
		:: m != NOBODY && !with_error -> put(FINISHED, m, s, last, 0, 0, NOTHING)
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < P * K ->
		if
		:: (open_slots[s] & (1 << n)) && !IS(FINISH_KEEPS) ->
			reach(open_step_dropped);
			open_slots[s] = open_slots[s] ^ (1 << n);
			read_done(s, n)
		:: else
		fi;
		n++
	:: else -> break
	od
}

/* mst_shard_admit() */
inline link(p, s)
{
	must(session[s * W + RANK(p)] == NOBODY, TRUST);
	session[s * W + RANK(p)] = p;
	linked[X(p, s)] = 1;
	k = 0;
	do
	:: k < K -> epoch[SLOT(p, s, k)] = 1; k++
	:: else -> break
	od;
	if
	:: finish_said[s] && failed -> ended_word[p] = 1
	:: finish_said[s] && !failed -> put(FINISHED, p, s, newest, 0, 0, NOTHING)
	:: else
	fi
}

inline add_job(s, kind, p, version, buffer, number, where, slots)
{
	must(nfull(jobs[s]), BOUNDED);
#if IS(OUT_OF_ORDER)
	jobs[s]!!kind, p, version, buffer, number, where, slots
#else
	jobs[s]!kind, p, version, buffer, number, where, slots
#endif
}

#if PARTIALS > 0
/* How many slots rank has in the open step, as m; the rest is what mst_open_step_add_to_partial()
 * adds up. */
inline partial_slots(s, rank, really)
{
	m = 0; n = 0;
	do
	:: n < P * K ->
		if
		:: (open_slots[s] & (1 << n)) && RANK(n / K) == rank ->
			if
			:: really ->
				open_slots[s] = open_slots[s] ^ (1 << n);
				add_job(s, PARTIAL, n / K, n % K, 0, m == 0 && partial_starts, NOTHING, 0)
			:: else
			fi;
			m++
		:: else
		fi;
		n++
	:: else -> break
	od
}

/* mst_open_step_add_up(); the order within a rank is of no matter to a set. */
inline partial(s, rank)
{
	partial_starts = 1;
	partial_slots(s, rank, 0);
	if
	:: m >= 2 && partial_taken[s] -> reach(partial_waits_for_buffer)
	:: m >= 2 && !partial_taken[s] ->
		partial_taken[s] = 1;
		reach(partials);
		partial_rank[s] = rank + 1;
		partial_slots(s, rank, 1)
	:: else
	fi
}

/* mst_open_step_add() */
inline partial_or_keep(s, rank)
{
	if
	:: partial_rank[s] == rank + 1 ->
		reach(partials_one_more);
		partial_starts = 0;
		partial_slots(s, rank, 1)
	:: else -> partial(s, rank)
	fi
}

/* commit_end(): the buffer of partial sums is free, for whoever waits for it. */
inline partial_free(s)
{
	if
	:: j_slots & PARTIAL_BIT ->
		partial_taken[s] = 0;
		partial_set[s * PIECES] = 0;
		partial_set[s * PIECES + PIECES - 1] = 0;
		c = 0;
		do
		:: c < W -> partial(s, c); c++
		:: else -> break
		od
	:: else
	fi
}

/* A piece of the partial sum. */
inline partial_piece(s)
{
	x = X(j_p, s);
	q = memory[CELL(j_p, s, j_version, cursor[s])];
	must(!freed[x], FREED);
	must(q != 0 && q == full_id[x * K + j_version], EXACT);
	partial_set[s * PIECES + cursor[s]] =
		(j_number -> 0 : partial_set[s * PIECES + cursor[s]]);
	must((partial_set[s * PIECES + cursor[s]] & BIT(q)) == 0, SET);
	partial_set[s * PIECES + cursor[s]] = partial_set[s * PIECES + cursor[s]] | BIT(q)
}
#endif

/* mst_shard_execute() of decisions[s]' first. */
inline execute(s)
{
	decisions[s]?d_kind, d_p, d_a, d_b, d_c, d_where;
	x = X(d_p, s);
	any = (session[s * W + RANK(d_p)] == d_p); /* session_of() */
	if
	:: d_kind == COMMIT -> /* mst_task_commit() */
#if PARTIALS > 0
		open_slots[s] = open_slots[s] | (partial_rank[s] > 0 -> PARTIAL_BIT : 0);
		partial_rank[s] = 0;
#endif
		add_job(s, COMMIT, newest_buffer[s], d_a, d_b, 0, NOTHING, open_slots[s]);
		open_slots[s] = 0;
		newest_buffer[s] = d_b;
		n = 0;
		do
		:: n < P && IS(ADVISE_EACH) ->
			if
			:: linked[X(n, s)] -> put(HINT, n, s, d_a, 0, 0, NOTHING)
			:: else
			fi;
			n++
		:: else -> break
		od
	:: d_kind == FINISH -> finish(s, d_a, d_b)
	:: d_kind == LINK -> link(d_p, s)
	:: d_kind == EVICT -> evict(d_p, s)
	:: d_kind == COUNT && any ->
		i = SLOT(d_p, s, d_a);
		must(is_full[i] && !to_read[i], TRUST);
		to_read[i] = 1;
		busy[x]++;
		open_slots[s] = open_slots[s] | (1 << OWN(d_p, d_a));
#if PARTIALS > 0
		partial_or_keep(s, RANK(d_p))
#endif
	:: d_kind == VERDICT && any && s == 0 && !(IS(VERDICT_UNHEARD) && d_where != COUNTED) ->
		put(TOLD, d_p, s, d_a, d_b, 0, d_where)
	:: d_kind == REGRANT && any ->
		next_epoch[SLOT(d_p, s, d_a)] = d_b;
		grant_if_read(d_p, s, d_a)
	:: d_kind == RELEASE && any -> /* answer() */
		busy[x]++;
		answering[x] = 1;
		add_job(s, RELEASE, d_p, d_a, d_b, d_c, d_where, 0)
	:: else
	fi
}

/* ---- the queue of work ---- */

/* Does anybody read buffer b of shard s, or is it on its way to anybody? */
inline find_user(s, b)
{
	found = 0;
	n = 0;
	do
	:: n < P -> found = found || (uses[X(n, s)] == b + 1 && !ended_word[n]); n++
	:: else -> break
	od
}

/* commit_chunk(): one piece of every summand is read, one piece of the version written. */
inline commit_piece(s)
{
	must(j_version == committed[s] + 1, ORDER);
	set = 0;
#if PARTIALS > 0
	set = (j_slots & PARTIAL_BIT -> partial_set[s * PIECES + cursor[s]] : 0);
#endif
	n = 0;
	do
	:: n < P * K ->
		if
		:: j_slots & (1 << n) ->
			q = memory[CELL(n / K, s, n % K, cursor[s])];
			must(!freed[X(n / K, s)], FREED);
			if
			:: over[X(n / K, s)] -> reach(read_after_session_end)
			:: else
			fi;
			must(q != 0 && q == full_id[SLOT(n / K, s, n % K)], EXACT);
			must((set & BIT(q)) == 0, SET);
			set = set | BIT(q)
		:: else
		fi;
		n++
	:: else -> break
	od;
	must(set == record[j_version], SET);
	must(version_at[PAGE(s, j_p, cursor[s])] == j_version - 1, HELD); /* the version before */
	find_user(s, j_buffer);
	must(!found, HELD);
	version_at[PAGE(s, j_buffer, cursor[s])] = j_version
}

inline commit_end(s)
{
	committed[s] = j_version;
	record[j_version] = (committed[0] >= j_version && committed[S - 1] >= j_version ->
				     0 : record[j_version]);
	n = 0;
	do
	:: n < P * K ->
		if
		:: j_slots & (1 << n) -> read_done(s, n)
		:: else
		fi;
		n++
	:: else -> break
	od;
#if PARTIALS > 0
	partial_free(s)
#endif
}

/* answer_end() */
inline answer_end(s, x)
{
	if
	:: !over[x] && (j_where == IN_PLACE || (j_where == COPIED && !MAPS)) ->
		uses[x] = j_buffer + 1
	:: else
	fi;
	if
	:: !over[x] && j_where == COPIED && !MAPS -> busy[x]++; unsent[x]++
	:: else
	fi;
	put(ANSWER, j_p, s, j_version, j_buffer, j_number, j_where);
	if
	:: !over[x] && j_where == COPIED && MAPS -> e_seq = j_number; report(ANSWERED, j_p, s)
	:: else
	fi;
	answering[x] = 0;
	unbusy(j_p, s)
}

/* mst_shard_work(): one piece of the oldest job; the last piece ends it. */
inline work(s)
{
	jobs[s]?<j_kind, j_p, j_version, j_buffer, j_number, j_where, j_slots>;
	if
	:: j_kind == COMMIT -> commit_piece(s); any = (cursor[s] == PIECES - 1)
#if PARTIALS > 0
	:: j_kind == PARTIAL -> partial_piece(s); any = (cursor[s] == PIECES - 1)
#endif
	:: j_kind == RELEASE ->
		any = 1;
		if
		:: MAPS && j_where == COPIED && !over[X(j_p, s)] ->
			must(version_at[PAGE(s, j_buffer, cursor[s])] == j_version, HELD);
			any = (cursor[s] == PIECES - 1)
		:: else
		fi
	fi;
	if
	:: !any -> cursor[s]++
	:: else ->
		cursor[s] = 0;
		jobs[s]?d_kind, _, _, _, _, _, _;
		if
		:: j_kind == COMMIT -> commit_end(s)
		:: j_kind == PARTIAL -> read_done(s, OWN(j_p, j_version))
		:: j_kind == RELEASE -> answer_end(s, X(j_p, s))
		fi
	fi
}
