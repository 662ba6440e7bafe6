/* SPDX-License-Identifier: MIT */
/*
 * A worker: client/core/{worker,arrivals,outcome}.c and what client/*.c does with them. It fills a
 * slot, pushes it with or without asking, or gives it up; then it waits; at last it leaves.
 * Being stopped is being late with the next step; dying is never taking it.
 */

inline send(kind, p, s, a1, b1, c1, t1, asks1)
{
	if
	:: MAPS || linked[X(p, s)] ->
		c = (kind == DATA -> (b1 + own_epoch[OWN(p, a1)]) % RAILS : 0);
		must(nfull(up[UP(p, s, c)]), BOUNDED);
		up[UP(p, s, c)]!kind, a1, b1, c1, t1, asks1;
#if RAILS > 1
		if
		:: kind != DATA && !(kind == ABANDON && IS(ABANDON_ONE_RAIL)) ->
			up[UP(p, s, 1)]!kind, a1, b1, c1, t1, asks1
		:: else
		fi
#endif
	:: else /* to nobody */
	fi
}

/* A piece of the gradient: over shared memory it is there at once, else it travels. */
inline send_piece(p, k, piece, seq)
{
	n = 0;
	do
	:: n < S ->
#if MAPS
		must(over[X(p, n)] || (!is_full[SLOT(p, n, k)] && !to_read[SLOT(p, n, k)]), EXACT);
		memory[CELL(p, n, k, piece)] = BYTES_OF(p, seq);
#else
		send(DATA, p, n, k, piece, seq, 0, 0);
#endif
		n++
	:: else -> break
	od
}

/* To every shard. */
inline send_all(kind, p, a1, b1, c1, t1, asks1)
{
	m = 0;
	do
	:: m < S -> send(kind, p, m, a1, b1, c1, t1, asks1); m++
	:: else -> break
	od
}

/* It reads no more what it had. */
inline ask_goes_out(p)
{
	out = 1;
	answers = 0;
	m = 0;
	do
	:: m < S -> uses[X(p, m)] = 0; m++
	:: else -> break
	od
}

/* mst_worker_push(). Pieces that have not been sent yet go first. */
inline push(p, with_ask)
{
	ops--;
	sent_seq++;
	asking = (with_ask -> sent_seq : asking);
	if
	:: IS(HEADER_FIRST) ->
		send_all(HEADER, p, at, own_epoch[OWN(p, at)], sent_seq, held[p], with_ask)
	:: else
	fi;
	do
	:: filled < PIECES -> send_piece(p, at, filled, sent_seq); filled++
	:: else -> break
	od;
	if
	:: !IS(HEADER_FIRST) ->
		send_all(HEADER, p, at, own_epoch[OWN(p, at)], sent_seq, held[p], with_ask)
	:: else
	fi;
	slot[OWN(p, at)] = SPENT;
	filled = 0;
	if
	:: with_ask -> ask_goes_out(p); waits = 1
	:: else
	fi
}

/* mst_worker_abandon() after the first piece has left. */
inline abandon(p)
{
	abandons_left--;
	send_piece(p, at, 0, NO_SEQ);
	send_all(ABANDON, p, at, own_epoch[OWN(p, at)], 0, 0, 0);
	slot[OWN(p, at)] = SPENT
}

/* find_fillable(): the slot at hand, or the lowest that is granted; at = K: none. */
inline find_slot(p)
{
	n = 0;
	do
	:: n < K && slot[OWN(p, n)] != FILLING -> n++
	:: else -> break
	od;
	m = 0;
	do
	:: n == K && m < K && slot[OWN(p, m)] != FREE -> m++
	:: else -> break
	od;
	at = (n < K -> n : m);
	must(at < K, TRUST)
}

#define HAS_SLOT(p) (slot[OWN(p, 0)] != SPENT || slot[OWN(p, K - 1)] != SPENT)

/* mst_worker_granted(), once every shard has granted it. */
inline take_grant(p, s, k, e)
{
	granted_by[OWN(p, k)] = granted_by[OWN(p, k)] | (1 << s);
	if
	:: granted_by[OWN(p, k)] == SHARDS_ALL ->
		must(slot[OWN(p, k)] == SPENT && e == own_epoch[OWN(p, k)] + 1, TRUST);
		slot[OWN(p, k)] = FREE;
		own_epoch[OWN(p, k)] = e;
		granted_by[OWN(p, k)] = 0
	:: else
	fi
}

/* mst_worker_answered(). What is read is looked at now; that it stays, commit_piece() watches. */
inline take_answer(p, s, version, buffer, number, where)
{
	must(out && (answers & (1 << s)) == 0, TRUST);
	must(answers == 0 || version == named, ORDER);
	must(held[p] == NONE || version >= held[p], ORDER);
	if
	:: where != KEEP ->
		must(ended_word[p] || (MAPS && where == COPIED) ||
			(version_at[PAGE(s, buffer, 0)] == version &&
			version_at[PAGE(s, buffer, PIECES - 1)] == version), HELD)
	:: else -> must(version == held[p], TRUST)
	fi;
	if
	:: where == COPIED && !MAPS -> uses[X(p, s)] = 0; sent[X(p, s)]!number
	:: where == KEEP && held_in_place[p] -> uses[X(p, s)] = held_buffer[p] + 1
	:: else
	fi;
	answers = answers | (1 << s);
	named = version;
	if
	:: answers == SHARDS_ALL ->
		out = 0;
		held[p] = version;
		held_in_place[p] = (where == IN_PLACE || (where == KEEP && held_in_place[p]));
		held_buffer[p] = (where == IN_PLACE -> buffer :
				  (where == KEEP -> held_buffer[p] : 0));
		answers = 0;
		named = 0
	:: else
	fi
}

/* take_arrival(); then: is the outcome that is waited for there, mst_worker_misses()? */
inline take(p, s)
{
	down[X(p, s)]?d_kind, d_a, d_b, d_c, d_where;
	if
	:: d_kind == GRANT -> take_grant(p, s, d_a, d_b)
	:: d_kind == TOLD && last == NONE -> must(d_b == heard + 1, ONCE); heard++
	:: d_kind == ANSWER -> take_answer(p, s, d_a, d_b, d_c, d_where)
	:: d_kind == FINISHED ->
		reach(finished_is_told);
		must(held[p] == NONE || d_a >= held[p], ORDER);
		last = d_a
	:: else
	fi;
	waits = (waits && (out || (last == NONE && (heard < asking || !HAS_SLOT(p)))))
}

inline leave(p)
{
	last_seq[p] = sent_seq;
	says[p] = LEAVE;
	leaving = 1
}

/* What an ended session's worker still does reaches nobody, unless memory or a link is there. */
#if MAPS
#define ACTS(p) 1
#elif S == 1
#define ACTS(p) (!ended_word[p] || linked[p])
#else
#define ACTS(p) (!ended_word[p] || linked[X(p, 0)] || linked[X(p, 1)])
#endif
#define IDLE (!waits && !leaving && last == NONE && ACTS(p))

proctype worker(byte p)
{
	byte ops = (p == 0 -> OPS : OTHERS), sent_seq, heard, asking, filled, at, answers, named;
	byte last = NONE;
	bit out, waits, leaving;

end:	if /* a session that is never wanted */
	:: p < W
	:: atomic { p >= W && member[RANK(p)] == JOINED && cur[RANK(p)] == p ->
		says[p] = START; out = 1; waits = 1 }
	:: atomic { p >= W && (done[p] || ended_word[p]) -> goto over_now }
	fi;
	do
	:: atomic { ended_word[p] -> break } /* looks at the session word */
	:: atomic {
#if S > 1
		if
		:: nempty(down[X(p, 0)]) && nfull(sent[X(p, 0)]) -> e_s = 0
		:: nempty(down[X(p, 1)]) && nfull(sent[X(p, 1)]) -> e_s = 1
		fi;
		d_step { take(p, e_s); e_s = 0 }
#else
		nempty(down[X(p, 0)]) && nfull(sent[X(p, 0)]) -> d_step { take(p, 0) }
#endif
	   }
#if MAPS
	:: d_step { IDLE && ops > 0 && HAS_SLOT(p) && filled < PIECES - 1 ->
		find_slot(p);
		slot[OWN(p, at)] = FILLING;
		send_piece(p, at, filled, sent_seq + 1);
		filled++ }
	/* Given up: nothing is sent, the grant stays. */
	:: d_step { IDLE && filled > 0 && abandons_left > 0 ->
		abandons_left--;
		send_piece(p, at, 0, NO_SEQ);
		slot[OWN(p, at)] = FREE;
		filled = 0 }
#define READY (HAS_SLOT(p) && filled == PIECES - 1)
#else
	:: d_step { IDLE && ops > 0 && HAS_SLOT(p) && abandons_left > 0 ->
		find_slot(p); abandon(p) }
#define READY (HAS_SLOT(p))
#endif
	:: d_step { IDLE && ops > 0 && READY -> find_slot(p); push(p, 1) }
	:: d_step { IDLE && ops > 0 && READY && keeps_left > 0 ->
		keeps_left--; find_slot(p); push(p, 0) }
	:: d_step { IDLE && ops > 0 && !HAS_SLOT(p) -> /* muster_wait(): mst_worker_wait_asks() */
		ask_goes_out(p); send(ASK, p, 0, 0, 0, 0, 0, 0); waits = 1 }
	:: d_step { last != NONE && !out && !leaving && held[p] != last && ACTS(p) ->
		ask_goes_out(p); send(ASK, p, 0, 0, 0, 0, 0, 0); waits = 1 }
	:: d_step { (IDLE && ops == 0) ||
		    (last != NONE && !out && !leaving && held[p] == last && ACTS(p)) ->
		leave(p) }
	od;
over_now:
	atomic {
		done[p] = 1;
		m = 0;
		do
		:: m < S -> uses[X(p, m)] = 0; m++
		:: else -> break
		od;
		ops = 0; sent_seq = 0; heard = 0; asking = 0; filled = 0; at = 0; answers = 0;
		named = 0; last = 0; out = 0; waits = 0; leaving = 0
	}
}
