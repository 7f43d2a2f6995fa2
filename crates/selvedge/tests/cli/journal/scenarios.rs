//! The six scenarios that the journal was designed by, and what they grew to: a story in, a
//! transcript out.

use expect_test::expect;

use super::story::check;

#[test]
fn a_simple_question_is_looked_up_and_answered_with_its_source() {
    check(
        "
        note:        2026-11-10 10:30 Bench 185x5, felt heavy
        note:        2026-11-12 18:00 Ran 5k easy
        ask:         Show me last week's workouts
        router:      query
        planner:     retrieve {\"query_type\": \"simple\"}
        retriever:   last week
        analyzer:    sufficient 2026-11-10 2026-11-12
        synthesizer: Bench on the 10th, a run on the 12th. <- 2026-11-10 2026-11-12
        evaluator:   pass
        observer:    {}
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   2 entries
            analyze1           sufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            Bench on the 10th, a run on the 12th.

            Sources: 2026-11-10T10:30-ID, 2026-11-12T18:00-ID

            the notes:
            2026-11-10T10:30-ID pending Bench 185x5, felt heavy
            2026-11-12T18:00-ID pending Ran 5k easy
        "#]],
    );
}

#[test]
fn an_insight_takes_a_second_look_further_back() {
    check(
        "
        note:        2026-10-20 07:00 New job, up at five
        note:        2026-11-10 10:30 Bench 185x5, felt heavy
        ask:         Why did my bench feel heavy last week?
        router:      query
        planner:     retrieve
        retriever:   last week
        analyzer:    insufficient contextual how you slept before
        planner:     retrieve
        retriever:   past 2 months
        analyzer:    sufficient 2026-10-20 2026-11-10
        synthesizer: You have been up at five since 2026-10-20. <- 2026-10-20 2026-11-10
        evaluator:   pass
        observer:    {\"should_update\": true, \"insights_captured\": [\"early job\"], \"updates\": [{\"category\": \"insight\", \"key\": \"early_job\", \"value\": \"up at five, bench is heavy\", \"confidence\": \"tentative\", \"source\": \"2026-11-10\"}]}
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           insufficient
            plan2              retrieve
            retrieve2.choose   answered
            retrieve2.search   2 entries
            analyze2           sufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered
            observe1.remember  remembered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → plan (2): insufficient
            plan → retrieve (2): otherwise: search first
            retrieve → analyze (2): always
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            You have been up at five since 2026-10-20.

            Sources: 2026-10-20T07:00-ID, 2026-11-10T10:30-ID

            the notes:
            2026-10-20T07:00-ID pending New job, up at five
            2026-11-10T10:30-ID pending Bench 185x5, felt heavy
        "#]],
    );
}

#[test]
fn a_recommendation_that_is_not_safe_is_written_again() {
    check(
        "
        note:        2026-11-17 18:00 Squat 140x3, knee hurts
        ask:         What should I train today?
        router:      query {\"selected_domains\": [\"strength\"]}
        planner:     retrieve {\"query_type\": \"recommendation\"}
        retriever:   past 2 weeks
        analyzer:    sufficient 2026-11-17
        synthesizer: Squat again, heavier. <- 2026-11-17
        evaluator:   fail
        planner:     synthesize
        synthesizer: Rest the knee that hurt on 2026-11-17, bench instead. <- 2026-11-17
        evaluator:   pass
        observer:    {}
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general, strength
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           sufficient
            synthesize1        answered
            evaluate1          fail
            plan2              synthesize
            synthesize2        answered
            evaluate2          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            evaluate → plan (2): fail, retries left
            plan → synthesize (2): what was found is enough
            synthesize → evaluate (2): always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            Rest the knee that hurt on 2026-11-17, bench instead.

            Sources: 2026-11-17T18:00-ID

            the notes:
            2026-11-17T18:00-ID pending Squat 140x3, knee hurts
        "#]],
    );
}

#[test]
fn a_question_in_two_parts_answers_the_second_from_the_first() {
    check(
        "
        note:        2026-11-10 10:30 Slept 4 hours
        ask:         Why was I tired and what should I change?
        router:      query
        planner:     retrieve {\"execution_strategy\": \"dependent\", \"execution_order\": [1, 2], \"sub_queries\": [{\"id\": 2, \"question\": \"What should I change?\", \"retrieval_strategy\": \"date_range\"}, {\"id\": 1, \"question\": \"Why was I tired?\", \"retrieval_strategy\": \"date_range\"}]}
        retriever:   past 2 months
        analyzer:    sufficient 2026-11-10
        analyzer:    sufficient 2026-11-10
        synthesizer: You slept four hours. Go to bed earlier. <- 2026-11-10
        evaluator:   pass
        observer:    {}
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1.q1        sufficient
            analyze1.q2        sufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            You slept four hours. Go to bed earlier.

            Sources: 2026-11-10T10:30-ID

            the notes:
            2026-11-10T10:30-ID pending Slept 4 hours
        "#]],
    );
}

#[test]
fn a_correction_keeps_both_texts_and_changes_one_value() {
    check(
        "
        log:         Bench 85x5
        router:      log {\"selected_domains\": [\"strength\"]}
        parser:      {\"domain_data\": {\"strength\": {\"exercises\": [{\"name\": \"bench press\", \"weight\": 85, \"weight_unit\": \"lb\", \"reps\": 5}]}}}
        journal:     actually that was 185 not 85
        router:      correction {\"selected_domains\": [\"strength\"]}
        parser:      {\"is_correction\": true, \"correction_delta\": [{\"domain\": \"strength\", \"field\": \"/exercises/0/weight\", \"from\": 85, \"to\": 185}]}
        observer:    {}
        ",
        expect![[r#"
            route1             correction
            build_context1     domains: general, strength
            parse1             answered
            store1             corrected 2026-11-18T09:30-ID
            observe1.learn     answered

            route → build_context: always
            build_context → parse: it records something that is not recorded yet
            parse → store: otherwise
            store → observe: always
            observe → complete: always

            exit 0
            Corrected `2026-11-18T09:30-ID`: bench press weight recorded as 85 → corrected to 185

            the notes:
            2026-11-18T09:30-ID done Bench 85x5 {"strength":{"exercises":[{"name":"bench press","reps":5,"weight":185,"weight_unit":"lb"}]}}
            2026-11-18T09:30-ID corrects 2026-11-18T09:30-ID done actually that was 185 not 85 /  / Correction: bench press weight recorded as 85 → corrected to 185
        "#]],
    );
}

#[test]
fn a_question_that_no_note_speaks_of_gets_an_honest_answer() {
    check(
        "
        note:        2026-11-10 10:30 Bench 185x5
        ask:         How's my swimming progress?
        router:      query {\"selected_domains\": [\"swimming\"]}
        planner:     retrieve
        retriever:   past 2 weeks
        analyzer:    insufficient topical any swimming notes
        planner:     retrieve
        retriever:   past 2 months
        analyzer:    insufficient topical any swimming notes
        planner:     retrieve
        retriever:   ever
        analyzer:    insufficient topical any swimming notes
        synthesizer: Your notes say nothing about swimming.
        evaluator:   pass
        observer:    {}
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general, swimming
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           insufficient
            plan2              retrieve
            retrieve2.choose   answered
            retrieve2.search   1 entry
            analyze2           insufficient
            plan3              retrieve
            retrieve3.choose   answered
            retrieve3.search   1 entry
            analyze3           insufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → plan (2): insufficient
            plan → retrieve (2): otherwise: search first
            retrieve → analyze (2): always
            analyze → plan (3): insufficient
            plan → retrieve (3): otherwise: search first
            retrieve → analyze (3): always
            analyze → synthesize: insufficient, and planned anew often enough: partial
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            Your notes say nothing about swimming.

            This answer is partial. To say more, I would need:
            - any swimming notes

            the notes:
            2026-11-10T10:30-ID pending Bench 185x5
        "#]],
    );
}

#[test]
fn a_note_with_a_question_is_stored_before_its_question_is_searched_for() {
    check(
        "
        journal:     Tired today, 4 hours sleep. Why am I always tired?
        router:      both {\"log_portion\": \"Tired today, 4 hours sleep.\", \"query_portion\": \"Why am I always tired?\"}
        parser:      {\"domain_data\": {\"general\": {\"sleep\": {\"duration\": 4, \"unit\": \"h\"}}}}
        planner:     retrieve
        retriever:   past 2 weeks
        analyzer:    sufficient 2026-11-18
        synthesizer: You slept four hours. <- 2026-11-18
        evaluator:   pass
        observer:    {}
        ",
        expect![[r#"
            route1             both
            build_context1     domains: general
            parse1             answered
            store1             stored 2026-11-18T09:30-ID
            plan1              retrieve
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           sufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            build_context → parse: it records something that is not recorded yet
            parse → store: otherwise
            store → observe: always
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            observe → complete: always

            exit 0
            Logged `2026-11-18T09:30-ID`. Read as: general.

            You slept four hours.

            Sources: 2026-11-18T09:30-ID

            the notes:
            2026-11-18T09:30-ID done Tired today, 4 hours sleep. {"general":{"sleep":{"duration":4,"unit":"h"}}}
        "#]],
    );
}

#[test]
fn what_only_the_user_knows_is_asked_once_and_answered() {
    check(
        "
        note:        2026-11-10 10:30 Bench felt heavy
        ask:         Why was bench heavy?
        router:      query
        planner:     clarify
        retriever:   past 2 months
        analyzer:    insufficient subjective how you slept that week
        planner:     clarify
        clarifier:   Did you sleep badly?
        analyzer:    sufficient user
        synthesizer: You say that you slept badly. <- user
        evaluator:   pass
        observer:    {}
        answer:      yes, four hours
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general
            plan1              clarify
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           insufficient
            plan2              clarify
            clarify1           answered
            wait_user1         asks: Your notes do not say. Did you sleep badly? (`skip` goes on without an answer)
            wait_user1         the user: yes, four hours
            analyze2           sufficient
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → plan (2): insufficient
            plan → clarify: only the user knows, or it was searched and not found
            clarify → wait_user: there is something to ask
            wait_user → analyze (2): answered
            analyze → synthesize: sufficient
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            You say that you slept badly.

            the notes:
            2026-11-10T10:30-ID pending Bench felt heavy
        "#]],
    );
}

#[test]
fn a_question_that_was_answered_is_not_asked_again() {
    check(
        "
        note:        2026-11-10 10:30 Bench felt heavy
        ask:         Why was bench heavy?
        router:      query
        planner:     clarify
        retriever:   past 2 months
        analyzer:    insufficient subjective how you slept that week
        planner:     clarify
        clarifier:   Did you sleep badly?
        analyzer:    insufficient subjective how you slept that week
        planner:     clarify
        clarifier:   did you sleep BADLY
        synthesizer: Your notes do not say.
        evaluator:   pass
        observer:    {}
        answer:      I do not know
        ",
        expect![[r#"
            route1             query
            build_context1     domains: general
            plan1              clarify
            retrieve1.choose   answered
            retrieve1.search   1 entry
            analyze1           insufficient
            plan2              clarify
            clarify1           answered
            wait_user1         asks: Your notes do not say. Did you sleep badly? (`skip` goes on without an answer)
            wait_user1         the user: I do not know
            analyze2           insufficient
            plan3              clarify
            clarify2           answered
            synthesize1        answered
            evaluate1          pass
            observe1.learn     answered

            route → build_context: always
            build_context → plan: it asks something
            plan → retrieve: otherwise: search first
            retrieve → analyze: always
            analyze → plan (2): insufficient
            plan → clarify: only the user knows, or it was searched and not found
            clarify → wait_user: there is something to ask
            wait_user → analyze (2): answered
            analyze → plan (3): insufficient
            plan → clarify (2): only the user knows, or it was searched and not found
            clarify → synthesize: nothing is left to ask
            synthesize → evaluate: always
            evaluate → observe: pass
            observe → complete: always

            exit 0
            Your notes do not say.

            This answer is partial. To say more, I would need:
            - how you slept that week

            the notes:
            2026-11-10T10:30-ID pending Bench felt heavy
        "#]],
    );
}
