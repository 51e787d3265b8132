"""What attackers tried, or could try, and the test that shows what becomes of it.

A test is `path::name` below `tests/`, with the case in brackets where one test has many: `test_x[case]`.
`test_table.py` looks whether all of them exist.
"""

WORKSPACES = {
    # An agent in an isolated workspace, as root and as an ordinary user.
    "it rewrites the history, moves branches and tags, or drops a stash": (
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[amend]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[moved branches and tags]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[dropped stash]",
    ),
    "it plants hooks, settings or filters that git would run": (
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[hooks]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[hooks elsewhere]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[bombs of attributes]",
        "workspace/test_harvest.py::test_a_filter_of_the_person_does_not_run_for_attributes_of_the_agent",
        "workspace/test_harvest.py::test_what_the_agent_tells_its_own_git_changes_nothing",
    ),
    "it removes `.git`, links it elsewhere, or forges objects in it": (
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[.git removed]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[.git linked elsewhere]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[forged objects]",
        "workspace/test_hiding.py::test_the_objects_can_be_read_and_not_written",
    ),
    "it pushes to the person's repository": (
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[push by force]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[references of Raymond]",
    ),
    "it looks for the person's checkout, keys, home or RAYMOND_HOME": (
        "workspace/test_hiding.py::test_the_person_s_checkout_cannot_be_found_anywhere",
        "workspace/test_hiding.py::test_the_checkout_cannot_be_found_where_its_file_system_is_mounted_again",
        "workspace/test_home.py::test_the_home_is_empty",
        "workspace/test_home.py::test_variables_with_secrets_are_gone_and_lent_ones_are_there",
        "workspace/test_home.py::test_logins_in_addresses_of_remotes_are_not_lent",
        "workspace/test_steps.py::test_raymond_s_own_home_is_hidden_but_for_the_files_of_the_step",
    ),
    "it writes elsewhere: system, start files of a shell, caches, links and hard links out of the tree": (
        "workspace/test_writing.py::test_of_all_mounts_only_the_step_s_own_can_be_written",
        "workspace/test_writing.py::test_of_all_folders_of_the_machine_only_the_step_s_own_can_be_written",
        "workspace/test_writing.py::test_writes_to_installed_packages_and_caches_stay_in_layers_of_the_workspace",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[the start of a shell]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[links out of the tree]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[hard links]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[removal of everything]",
    ),
    "it unmounts, remounts, nests namespaces, traces or kills processes outside, or sets up the kernel": (
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[umount]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[remount]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[nested namespaces]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[root of the first process]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[ptrace]",
        "workspace/test_attacks.py::test_nothing_of_the_person_s_changes[kill]",
        "workspace/test_writing.py::test_nothing_of_the_whole_machine_can_be_opened_for_writing_below_proc_and_sys",
        "workspace/test_writing.py::test_a_step_has_no_capability_that_could_undo_its_place",
    ),
    "it leaves a process that writes to the tree after its step": (
        "workspace/test_processes.py::test_what_a_step_leaves_running_is_gone_when_it_has_ended",
        "workspace/test_processes.py::test_a_tree_with_a_step_in_it_is_not_harvested",
        "workspace/test_processes.py::test_after_a_kill_nothing_of_the_step_lives_when_the_tree_is_taken",
    ),
    "it changes a file without changing its size and time, or tells git to overlook it": (
        "workspace/test_harvest.py::test_a_change_of_the_same_size_and_time_is_taken_whatever_the_person_told_git",
        "workspace/test_harvest.py::test_a_file_that_the_person_assumes_unchanged_is_taken_when_the_agent_changes_it",
    ),
    "it makes pipes, huge files, names that git refuses, or rules that take git for ever": (
        "workspace/test_harvest.py::test_a_pipe_with_the_name_of_a_rule_file_is_not_opened",
        "workspace/test_harvest.py::test_a_huge_new_file_is_left_out_and_named",
        "workspace/test_harvest.py::test_a_name_that_git_refuses_is_left_out_and_hinders_nothing",
        "workspace/test_harvest.py::test_rules_that_take_git_for_ever_do_not_count",
    ),
    "it empties the ignore rules, so that the person's `.env` is taken along": (
        "workspace/test_harvest.py::test_a_copied_file_stays_out_when_the_agent_empties_the_ignore_rules",
    ),
    "it lets `apply` write through a link, or over what the person changed": (
        "workspace/test_apply.py::test_nothing_is_written_through_a_link_of_the_person",
        "workspace/test_apply.py::test_a_file_that_the_person_changed_is_in_the_way_of_everything",
        "workspace/test_apply.py::test_an_edit_while_files_are_prepared_is_in_the_way",
    ),
    "it starts a run of its own": (
        "workspace/test_ways.py::test_a_run_inside_an_isolated_step_is_refused_before_anything_is_paid",
    ),
}

CHECKS_IN_A_WORKSPACE = {
    # An agent that is hostile to its check.
    "it weakens, removes or replaces tests, settings or recipes": (
        "verifier/test_room.py::test_a_cheat_does_not_count[a weakened test]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a removed test]",
        "verifier/test_room.py::test_a_cheat_does_not_count[settings of the runner]",
        "verifier/test_room.py::test_a_cheat_does_not_count[another recipe]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a link in the place of the tests]",
    ),
    "it adds a test or a conftest that patches the code or the runner": (
        "verifier/test_room.py::test_a_cheat_does_not_count[a new test that patches the code]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a new test that patches the runner]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a new conftest]",
    ),
    "it puts a module, a program or a compiled file in the place of the real one": (
        "verifier/test_room.py::test_a_cheat_does_not_count[a module in the place of the runner]",
        "verifier/test_room.py::test_a_cheat_does_not_count[an installed program]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a program in the home]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a program in a folder of the PATH]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a compiled module]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a forged product]",
    ),
    "it hides a change from git, or rewrites the history that the check looks at": (
        "verifier/test_room.py::test_a_cheat_does_not_count[a change that the index of git hides]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a filter of git that hides a change]",
        "verifier/test_room.py::test_a_cheat_does_not_count[a rewritten history]",
    ),
    "it leaves a process that swaps files while the check runs": (
        "verifier/test_room.py::test_a_cheat_does_not_count[a process that goes on]",
    ),
    "it installs a package that decides the check, or lets a script of its own take part in an installation": (
        "verifier/test_dependencies.py::test_what_an_agent_installed_is_not_in_its_check",
        "verifier/test_dependencies.py::test_nothing_that_an_agent_wrote_takes_part_in_an_installation",
        "verifier/test_dependencies.py::test_a_package_that_leads_into_the_work_is_not_used",
    ),
    "it moves a module to get rid of what tests it": ("verifier/test_judged.py::test_a_move_hides_nothing",),
    "it leaves the marks of a conflict, or the value of a secret": (
        "verifier/test_judged.py::test_marks_of_a_conflict_are_never_green",
        "verifier/test_judged.py::test_the_value_of_a_secret_is_never_green",
    ),
}

CHECKS_HERE = {
    # An agent in the person's checkout: careless, and in good faith.
    "it claims without work": ("verifier/test_seals.py::test_a_claim_without_work_is_red",),
    "it edits the script, the Makefile, package.json, conftest.py or the tables of a test runner": (
        "verifier/test_seals.py::test_a_cheat_does_not_count",
        "verifier/test_seals.py::test_settings_of_npm_that_replace_the_shell_do_not_count",
    ),
    "it deletes a failing test, empties it, or edits one that was never committed": (
        "verifier/test_seals.py::test_a_cheat_does_not_count",
        "verifier/test_seals.py::test_tests_that_an_earlier_state_wrote_are_sealed_though_nobody_committed_them",
    ),
    "it adds GNUmakefile, a file named like the target, pytest.py, pytest.ini or .npmrc, even ignored ones": (
        "verifier/test_seals.py::test_a_cheat_does_not_count",
        "verifier/test_seals.py::test_settings_of_npm_that_replace_the_shell_do_not_count",
    ),
    "it sets the time of a file back, or puts it behind a link": (
        "verifier/test_seals.py::test_a_cheat_does_not_count[linked]",
        "verifier/test_seals.py::test_a_cheat_does_not_count[time-set-back]",
    ),
    "it edits what a recipe, an include, a link or a `cd` leads to, touches a stamp of make, or hides a helper": (
        "verifier/test_seals.py::test_what_decides_is_found_behind_other_names",
        "verifier/test_led_to.py::test_what_decides_is_found_where_others_lead",
        "verifier/test_led_to.py::test_what_a_linked_test_leads_to_is_sealed",
    ),
    "it edits a test of a Rust crate, sets a runner in .cargo/config.toml, or takes the harness away": (
        "verifier/test_cargo.py::test_a_cheat_does_not_count",
    ),
    "it removes the check": (
        "verifier/test_seals.py::test_a_sealed_check_that_is_gone_is_red_and_no_mistake_of_the_workflow",
    ),
    "it ends red through `on_fail` and comes back": (
        "verifier/test_seals.py::test_red_and_back_again_does_not_open_the_seal",
    ),
    "it takes the next check to another directory after a red one": (
        "machine/test_gates.py::test_an_agent_does_not_choose_another_directory_for_a_gate_that_is_not_green",
    ),
    "it prepares in a red visit what the next seal would take for the project's own": (
        "verifier/test_safety.py::test_what_a_red_visit_prepares_does_not_change_the_rules_of_the_next",
    ),
    "it makes the check write over what decides it": (
        "verifier/test_safety.py::test_a_check_that_writes_over_what_decides_it_shows_nothing",
    ),
    "it makes a folder a link that leads out of the tree": (
        "verifier/test_safety.py::test_nothing_is_put_back_through_a_link",
    ),
    "it makes a repository in the tree whose settings run something": (
        "verifier/test_safety.py::test_a_repository_inside_of_the_tree_is_asked_nothing",
    ),
    "it changes files of the seal in the folder of the run": (
        "verifier/test_seals.py::test_a_seal_that_is_not_the_journaled_one_is_refused",
    ),
    "it writes a text that takes a reader of build files long": (
        "verifier/test_manifests.py::test_no_text_takes_long",
    ),
    "it makes a pipe of a file that is read": (
        "verifier/test_readers.py::test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting",
    ),
    "it accepts its own change, or goes around the review": (
        "cli/test_reviews.py::test_nobody_but_a_person_decides_or_goes_around_it",
        "cli/test_reviews.py::test_what_an_agent_has_started_is_no_person_whatever_terminal_it_has",
        "cli/test_reviews.py::test_what_changed_after_the_review_is_not_what_was_accepted",
    ),
    "it edits a check in a submodule, in a bare or shallow repository, in a merge or rebase, or without git": (
        "cli/test_gated_repositories.py::test_an_edited_check_is_reviewed",
        "cli/test_gated_repositories.py::test_the_files_of_a_submodule_are_sealed",
        "cli/test_gated_repositories.py::test_a_test_in_conflict_is_for_a_person_when_an_agent_has_merged_it",
    ),
    "it edits a check where there are no namespaces": (
        "cli/test_without_namespaces.py::test_an_edited_check_waits_for_a_person",
    ),
    "it leaves the gated state by `function`, `call`, `fork` or `ask`, and ends elsewhere": (
        "language/test_lint_gates.py::test_a_way_around_the_gate_that_reaches_a_result_is_told",
        "language/test_lint_gates.py::test_a_gated_prompt_that_may_do_everything_can_pass_its_gate_by",
    ),
    "it tells its judge what to say, in AGENTS.md or CLAUDE.md": (
        "backends/test_claude.py::test_a_judge_has_no_tools_and_no_settings_of_the_project",
        "backends/test_codex.py::test_a_judge_has_no_tools_and_no_instructions_of_the_project",
    ),
    "it leaves a process that changes files while they are checked": (
        "cli/test_gates.py::test_what_a_turn_left_running_does_not_change_what_is_checked",
    ),
}

REQUESTS = {
    # Who may ask something of a run.
    "a step answers its own question: plain, without environment, as an orphan, with a terminal, at the socket": (
        "attacks/test_requests.py::test_no_step_answers_a_question_of_its_own_run",
        "attacks/test_requests.py::test_no_step_approves",
    ),
    "a step raises its budget, allows itself tools, or opens a directory": (
        "attacks/test_requests.py::test_no_step_gives_itself_more",
        "machine/test_requests.py::test_only_a_person_opens_more_directories",
    ),
    "a step trusts its project": ("attacks/test_requests.py::test_no_step_trusts_a_project",),
    "a step removes runs, or repairs a journal": (
        "attacks/test_requests.py::test_no_step_removes_or_cuts_what_others_did",
    ),
    "a step of another run asks for a stop or a pause": (
        "attacks/test_requests.py::test_a_step_cannot_stop_another_run",
        "machine/test_conductor.py::test_nobody_is_stopped_by_whoever_may_not_ask_for_it",
    ),
    "a step stops the run, or answers once its driver is gone, and makes it look like the person's doing": (
        "attacks/test_requests.py::test_a_step_may_stop_its_own_run",
        "machine/test_requests.py::test_a_pause_and_a_stop_say_that_a_step_asked_for_them",
        "attacks/test_requests.py::test_a_turn_that_outlived_its_driver_is_still_a_step",
    ),
    "a step tries to resume other runs, unseen": (
        "attacks/test_requests.py::test_that_a_step_tried_to_resume_is_in_the_journal_of_the_run",
    ),
    "a script, a notify command or a step moves an agent past a question that needs a person": (
        "attacks/test_requests.py::test_nobody_but_a_person_moves_an_agent_past_its_question",
        "machine/test_requests.py::test_what_needs_a_person_is_not_got_around_by_a_failure",
    ),
    "a file in the inbox, with a folder in the way of the socket": (
        "attacks/test_requests.py::test_a_file_in_the_inbox_says_nothing_about_who_wrote_it",
        "drivers/test_reception.py::test_a_door_that_cannot_be_opened_is_tried_again_and_nobody_else_is_believed",
    ),
    "nonsense in the inbox, or a file in its place": (
        "attacks/test_requests.py::test_nonsense_in_the_inbox_is_put_aside_for_good",
        "drivers/test_reception.py::test_nothing_in_the_inbox_ends_the_driver",
        "drivers/test_reception.py::test_a_file_in_place_of_the_inbox_does_not_end_the_driver",
    ),
    "a late or second answer goes to the next question": (
        "attacks/test_requests.py::test_an_answer_to_a_question_that_is_no_longer_open_is_refused",
    ),
    "ids of typed answers are used in advance": (
        "drivers/test_reception.py::test_no_request_that_came_before_takes_the_place_of_an_answer_that_is_typed",
    ),
    "one pause for two agents": (
        "machine/test_conductor.py::test_one_request_pauses_one_agent_and_the_failure_of_another_counts",
    ),
    "long names in requests": (
        "machine/test_requests.py::test_what_is_asked_does_not_fill_the_journal_with_the_reason_why_it_is_refused",
        "drivers/test_reception.py::test_what_became_of_requests_is_not_kept_for_ever",
    ),
    "the process that connected is gone and another one speaks": (
        "attacks/test_requests.py::test_a_process_that_is_gone_when_it_is_looked_at_is_no_person",
    ),
    "a chain of processes that is too long to follow, or falls apart while it is looked at": (
        "system/test_ancestry.py::test_a_line_is_seen_whole_or_not_at_all",
        "system/test_ancestry.py::test_a_line_whose_processes_end_while_it_is_walked_is_seen_whole_or_not_at_all",
    ),
    "the driver has no descriptors left to look with": (
        "system/test_ancestry.py::test_a_lack_of_descriptors_is_not_taken_for_an_answer",
        "drivers/test_crowded.py::test_a_driver_without_room_for_files_lives_and_can_be_stopped",
    ),
    "hundreds of connections to the driver that say nothing, one byte, or come and go": (
        "attacks/test_door.py::test_an_answer_gets_through_a_crowd_that_does_not_ask",
        "drivers/test_door.py::test_many_who_say_nothing_do_not_keep_others_out_for_long",
    ),
    "a socket in place of the driver's": ("drivers/test_door.py::test_who_does_not_drive_the_run_is_not_believed",),
    "a process with the driver's descriptors says yes, rubbish, or a byte every second": (
        "control/test_deliver.py::test_what_was_not_journaled_was_not_taken_whoever_says_so",
        "drivers/test_door.py::test_what_is_no_reply_is_an_error",
        "drivers/test_door.py::test_a_reply_that_never_ends_is_not_waited_for",
    ),
    "another name in driver.json, or a journal moved away for a moment, so that its driver is not seen": (
        "attacks/test_requests.py::test_no_step_hides_its_driver_from_another_run",
        "store/test_driven.py::test_driver_json_hides_nobody",
        "store/test_driven.py::test_a_journal_that_lies_elsewhere_hides_nobody",
    ),
    "secrets in what a request says about itself": (
        "attacks/test_requests.py::test_what_a_request_says_is_cleaned_of_secrets",
        "attacks/test_requests.py::test_what_a_sender_says_of_itself_is_cleaned_before_it_is_cut",
    ),
    "a run started in a step has more rights or a higher budget": (
        "attacks/test_requests.py::test_a_run_started_in_a_step_has_no_more_rights",
        "attacks/test_requests.py::test_a_run_started_in_a_step_has_the_mode_of_the_outer_run",
        "attacks/test_requests.py::test_a_run_started_in_a_step_has_no_higher_budget",
        "attacks/test_requests.py::test_a_step_gives_its_inner_run_no_more_than_its_own_has_also_at_the_door",
    ),
    "a run started in a step outlives it": (
        "attacks/test_requests.py::test_a_run_outlives_its_starter_only_where_a_person_allowed_it",
    ),
    "a run started in a step works elsewhere, or counts its turns as free": (
        "attacks/test_requests.py::test_a_run_started_in_a_step_works_where_its_own_may",
        "attacks/test_requests.py::test_a_run_started_in_a_step_counts_what_its_own_counts",
    ),
}

PROCESSES = {
    # What a step leaves running.
    "it waits until the driver has left, then answers or resumes": (
        "attacks/test_requests.py::test_what_a_step_leaves_behind_does_not_outlive_the_driver",
        "system/test_orphans.py::test_an_orphan_is_ended_and_not_waited_for_any_longer",
    ),
    "it brings the driver down with an error, and then answers": (
        "attacks/test_requests.py::test_a_driver_that_leaves_with_an_error_ends_what_could_pass_for_a_person",
    ),
    "it leaves a stop in the inbox and kills its driver, so that what has failed is tried again": (
        "attacks/test_requests.py::test_no_step_gets_what_has_failed_tried_again_by_killing_its_driver",
    ),
    "it kills the driver and takes its lock": (
        "crash/test_leftovers.py::test_what_is_left_of_a_step_and_holds_the_lock_is_ended",
        "crash/test_leftovers.py::test_a_run_is_resumed_although_what_is_left_of_a_step_holds_the_lock",
        "crash/test_leftovers.py::test_commands_that_end_nothing_name_what_holds_the_lock",
    ),
    "it keeps restarting itself, or grows a chain of processes at its end": (
        "system/test_orphans.py::test_one_that_keeps_starting_itself_anew_is_ended",
        "system/test_orphans.py::test_a_line_that_grows_at_its_end_is_ended",
        "system/test_cgroup.py::test_what_keeps_starting_itself_anew_stands_still_while_it_is_looked_for",
        "crash/test_leftovers.py::test_stop_now_ends_what_keeps_starting_itself_anew",
    ),
    "its first thread has ended, so that it looks dead": (
        "system/test_processes.py::test_a_process_whose_first_thread_has_ended_is_found_and_ended",
    ),
    "a mark quoted in an input or a variable": (
        "system/test_processes.py::test_whoever_quotes_a_mark_does_not_carry_it",
    ),
    "a thousand cgroups inside each other": (
        "system/test_cgroup.py::test_cgroups_in_each_other_are_looked_through_however_many_there_are",
    ),
    "absurd lines in `processes` and `cgroups`": (
        "system/test_noted.py::test_a_line_that_is_damaged_or_of_an_earlier_boot_names_nothing",
        "system/test_noted.py::test_a_number_that_is_too_long_names_nothing",
        "system/test_cgroup.py::test_a_run_takes_none_for_its_own_that_has_another_name",
        "system/test_cgroup.py::test_a_cgroup_of_somebody_else_is_left_alone",
    ),
    "a turn tries to restart its `max_time`": ("crash/test_settle.py::test_a_turn_cannot_make_its_time_begin_anew",),
}

RECORDS = {
    # What Raymond keeps, and what it finds in its place.
    "a pipe, a device, a link or rubbish where Raymond keeps something": (
        "attacks/test_never_70.py::test_whatever_lies_in_the_folder_of_a_run_is_no_bug",
        "attacks/test_never_70.py::test_whatever_lies_in_the_home_is_no_bug",
        "trust/test_agents.py::test_a_link_in_place_of_a_file_of_a_run_is_not_written_through",
    ),
    "a pipe in the place of a conversation": (
        "backends/test_claude.py::test_a_pipe_in_the_place_of_a_session_is_not_waited_for",
        "backends/test_codex.py::test_a_record_that_cannot_be_read_to_its_end_is_none",
    ),
    "a forged snapshot of a journal": (
        "store/test_journal.py::test_a_snapshot_that_somebody_else_wrote_does_not_keep_a_run_from_being_read",
    ),
    "output without end, or none at all, in the spool": (
        "attacks/test_bounds.py::test_a_line_without_end_is_trouble_of_its_turn",
        "crash/test_settle.py::test_what_lies_in_the_place_of_the_output_is_no_output",
    ),
    "links in the spool, the exports and the task folders": (
        "trust/test_agents.py::test_a_link_that_a_step_puts_into_its_spool_is_not_followed",
        "trust/test_agents.py::test_the_state_file_is_not_exported_through_a_link",
        "trust/test_cleaning.py::test_clean_follows_no_link_in_the_folder_of_a_run",
    ),
    "a state file in the project that a step has rewritten": (
        "trust/test_agents.py::test_what_a_step_writes_into_the_exported_state_file_is_not_believed",
    ),
    "a changed script, prompt or snapshot of the workflow": (
        "trust/test_agents.py::test_a_step_cannot_change_the_script_that_runs_next",
        "trust/test_agents.py::test_a_step_cannot_change_the_prompt_that_is_sent_next",
        "trust/test_agents.py::test_what_a_step_plants_beside_a_script_is_gone_within_a_second",
        "trust/test_checkouts.py::test_the_snapshot_of_a_run_is_compared_with_what_its_journal_says",
    ),
    "a changed long text": (
        "trust/test_damage.py::test_a_long_text_that_is_not_what_was_kept_is_damage_of_its_line",
        "trust/test_damage.py::test_a_long_text_cannot_be_a_file_from_elsewhere",
    ),
    "`git clean -fdx` or `rm -rf .raymond` in the middle of a run": (
        "trust/test_agents.py::test_a_work_tree_that_is_wiped_in_the_middle_of_a_run_costs_nothing",
        "trust/test_agents.py::test_an_agent_that_adds_everything_adds_nothing_of_raymond",
    ),
    "a removed or replaced journal": (
        "trust/test_driving.py::test_a_driver_that_loses_its_journal_stops",
        "trust/test_driving.py::test_a_journal_that_somebody_else_wrote_to_stops_its_driver",
    ),
    "a RAYMOND_HOME that is a link, is open to others or belongs to another user": (
        "trust/test_home.py::test_a_home_that_cannot_be_trusted_is_refused",
        "trust/test_users.py::test_a_home_of_another_user_is_refused",
    ),
    "an umask that opens files to others": (
        "trust/test_home.py::test_whatever_the_umask_nobody_else_can_open_the_home",
        "trust/test_home.py::test_whatever_the_umask_nobody_else_can_open_what_raymond_adds_to_the_work_tree",
    ),
}

CHECKOUTS = {
    # What comes with a checkout of somebody else's.
    "hooks, helpers, variables that redirect the key, servers": (
        "attacks/test_foreign_settings.py::test_settings_of_a_checkout_are_not_used_and_one_line_says_so",
        "e2e/test_foreign_checkouts.py::test_a_clone_runs_nothing_and_gets_no_key",
    ),
    "`.codex` in a checkout, or a line of trust in the person's own settings": (
        "attacks/test_foreign_settings.py::test_codex_is_not_started_in_a_checkout_with_settings_for_it",
        "attacks/test_foreign_settings.py::test_codex_is_told_for_each_turn_whom_to_trust_so_it_decides_nothing_itself",
        "e2e/test_foreign_checkouts.py::test_codex_is_not_started_in_a_project_with_settings_for_it",
    ),
    "an agent writes `.mcp.json` or hooks for its next turn": (
        "e2e/test_foreign_checkouts.py::test_what_an_agent_writes_in_one_turn_is_not_used_in_the_next",
    ),
    "settings that `raymond trust` cannot read but a program can": (
        "attacks/test_foreign_settings.py::test_settings_that_cannot_be_read_are_not_passed_over",
    ),
    "so many settings that a hook is pushed off the screen, or a server with an environment": (
        "attacks/test_foreign_settings.py::test_many_servers_do_not_push_a_hook_away",
        "attacks/test_foreign_settings.py::test_all_that_a_server_is_started_with_is_shown",
    ),
    "what a link in `.claude` leads to changes after the project was trusted, or leads out of it": (
        "attacks/test_foreign_settings.py::test_trust_lapses_when_what_a_link_leads_to_changes",
        "attacks/test_foreign_settings.py::test_a_link_that_leads_out_of_the_project_cannot_be_trusted",
    ),
    "skills with hooks in a folder below, whatever its name, or in one that cannot be listed": (
        "attacks/test_foreign_settings.py::test_trust_lapses_when_a_folder_gets_skills_of_its_own",
        "attacks/test_foreign_settings.py::test_a_skill_may_have_any_name_and_is_seen",
        "attacks/test_foreign_settings.py::test_a_folder_that_cannot_be_listed_may_hold_skills",
        "e2e/test_foreign_checkouts.py::test_skills_that_appear_in_a_folder_below_a_trusted_project_run_nothing",
    ),
    '`budget = 0`, `model = "opus"`, `retryable = ["(a+)+$"]` in its settings': (
        "attacks/test_widening.py::test_a_checkout_lifts_no_limit",
        "attacks/test_widening.py::test_a_pattern_that_may_take_for_ever_is_refused",
        "control/test_config.py::test_a_project_cannot_set_what_a_person_has_to_agree_to",
        "control/test_config.py::test_a_project_names_no_programs_and_no_prices",
    ),
    "settings of another user": (
        "trust/test_users.py::test_settings_of_another_user_are_an_error_that_names_the_user",
        "trust/test_users.py::test_a_folder_of_another_user_further_up_is_not_looked_at",
    ),
    "settings that are a link": ("trust/test_checkouts.py::test_settings_that_are_no_small_file_are_an_error",),
    "runs planted in `.raymond`": (
        "trust/test_checkouts.py::test_a_run_that_a_checkout_ships_is_not_listed",
        "trust/test_checkouts.py::test_a_run_that_a_checkout_ships_is_not_taken",
    ),
    "links in `.raymond` that `run` or `clean` would follow": (
        "trust/test_checkouts.py::test_a_run_uses_no_link_in_a_checkout",
        "trust/test_checkouts.py::test_clean_leaves_alone_what_a_link_in_a_checkout_points_to",
    ),
    "a `.git` that names somebody else's repository, or one below": (
        "system/test_git.py::test_a_folder_does_not_get_the_worktrees_of_a_repository_below_it",
        "system/test_git.py::test_a_repository_says_itself_what_belongs_to_it",
    ),
    "settings of git that run something when git is asked": (
        "system/test_git.py::test_no_monitor_of_the_repository_is_run",
        "system/test_git.py::test_nothing_is_fetched_with_a_command_of_the_repository",
    ),
    "another repository at the path of a run": (
        "trust/test_moves.py::test_a_run_is_not_resumed_in_another_repository_at_the_same_path",
    ),
    "`raymond.py` or `json.py` in the directory of an agent": (
        "attacks/test_helpers.py::test_a_notification_imports_nothing_from_the_directory_of_the_agent",
        "attacks/test_helpers.py::test_the_module_imports_nothing_from_the_directory_that_one_is_in",
    ),
    "a replaced package, or a poisoned build": (
        "attacks/test_supply_chain.py::test_a_release_whose_file_was_exchanged_is_refused",
        "attacks/test_supply_chain.py::test_the_build_backend_is_one_version_and_pinned_with_a_hash",
        "attacks/test_supply_chain.py::test_a_file_of_pins_holds_exact_versions_with_hashes_and_nothing_else",
    ),
}

RIGHTS = {
    # More rights than the person gave.
    "`gate: bash` in a workflow": ("attacks/test_widening.py::test_a_gate_gives_the_agent_no_right",),
    "`roots: [/home/me]` in a workflow": ("attacks/test_widening.py::test_a_workflow_opens_no_directory_by_naming_it",),
    "a root that is replaced by a link later": (
        "attacks/test_widening.py::test_a_root_that_is_replaced_by_a_link_later_leads_nowhere_new",
    ),
    '`<function model="opus">` where the site does not allow it': (
        "attacks/test_widening.py::test_a_tag_cannot_name_a_model_that_the_site_does_not_allow",
        "attacks/test_widening.py::test_the_rules_of_today_hold_for_a_model_that_was_chosen_before",
    ),
    "a session or model that looks like a flag": (
        "attacks/test_widening.py::test_a_model_that_looks_like_a_flag_is_refused_wherever_it_is_said",
        "attacks/test_widening.py::test_a_journal_that_holds_a_flag_starts_no_program_with_it",
    ),
    "a policy block that is misspelt, and so only a comment": (
        "language/test_policy.py::test_what_is_almost_a_block_is_refused_because_somebody_relies_on_it",
    ),
    "`--permission-mode plan` for a program that has no modes": (
        "control/test_preflight.py::test_a_mode_of_the_person_that_the_backend_ignores_is_found",
    ),
    "a `cd` that leads out, also through a link, or to a path that cannot be journaled": (
        "steps/test_working_directory.py::test_a_directory_outside_is_refused",
        "steps/test_working_directory.py::test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed",
        "steps/test_working_directory.py::test_a_path_that_is_not_utf8_is_refused",
    ),
    "an agent that works in the home writes the person's config.toml": (
        "attacks/test_widening.py::test_the_settings_of_a_person_are_closed_to_agents",
        "e2e/test_places.py::test_wherever_an_agent_works_it_reads_its_workflow_and_writes_in_its_task_folder_and_in_no_place_of_raymonds",
    ),
    "a session that wakes itself up, schedules work, or writes to other sessions": (
        "e2e/test_foreign_checkouts.py::test_no_tool_lets_a_session_act_after_its_turn_or_on_others",
    ),
    "a notify program of the agent's own": (
        "attacks/test_helpers.py::test_an_agent_that_works_elsewhere_does_not_bring_its_own_program",
        "attacks/test_helpers.py::test_a_command_runs_where_no_agent_of_the_run_works",
    ),
    "a notify URL that redirects inwards": ("attacks/test_helpers.py::test_a_redirect_is_not_followed_and_said",),
    "descriptors of the caller in a step": (
        "attacks/test_helpers.py::test_what_the_caller_left_open_reaches_neither_steps_nor_notifications",
    ),
    "a value that sets PATH or LD_PRELOAD for a script": (
        "steps/test_script_step.py::test_what_a_model_writes_can_never_set_a_variable_of_the_system",
    ),
    "a scripted reply that writes through a link": (
        "trust/test_agents.py::test_a_scripted_reply_writes_through_no_link",
    ),
    "a forged result that costs nothing, before or after the real one": (
        "attacks/test_costs.py::test_a_forged_result_before_or_after_the_real_one_lowers_nothing",
        "attacks/test_costs.py::test_two_forged_results_are_not_free_either",
    ),
    "a program killed by its own tool, to be cheaper": (
        "attacks/test_costs.py::test_a_turn_that_ends_its_own_program_is_not_cheaper_for_it",
    ),
}

TEXTS = {
    # What agents and others write.
    "input that swallows a script's transition": (
        "attacks/test_text.py::test_input_that_swallows_the_transition_of_a_script_ends_in_a_failure",
        "attacks/test_text.py::test_what_a_script_writes_to_its_file_decides_and_its_output_is_only_output",
        "attacks/test_text.py::test_what_is_wrong_with_the_file_is_a_failure_whatever_was_printed",
    ),
    "the output of a check that ends its own fence": (
        "machine/test_gates.py::test_the_output_cannot_end_its_own_fence",
    ),
    "an error that rewrites the terminal, or makes a line of its own": (
        "faces/test_lines.py::test_a_note_shows_the_control_characters_that_it_quotes",
        "faces/test_lines.py::test_an_error_makes_no_line_of_its_own",
    ),
    "a setting, a description or a file name with a line break that writes `error:` or `hint:`": (
        "faces/test_foreign_text.py::test_only_lines_of_ours_begin_where_ours_begin",
        "faces/test_foreign_text.py::test_an_error_keeps_what_it_quotes_in_the_margin",
    ),
    "a name of a state, a tool or a folder that is a command for the person who pastes a hint": (
        "test_pasted.py::test_every_value_in_a_command_of_ours_is_an_id_a_number_or_quoted",
        "test_pasted.py::test_a_value_is_one_word_for_a_shell",
        "faces/test_foreign_text.py::test_no_command_in_a_quoted_name_is_put_on_a_line_of_its_own",
    ),
    "a question that overwrites itself on the terminal, or continues out of sight": (
        "attacks/test_requests.py::test_a_question_cannot_pass_for_another_one",
        "attacks/test_requests.py::test_status_shows_all_of_a_question",
    ),
    "megabytes of the beginnings of tokens, of headers of keys, of escapes": (
        "attacks/test_text.py::test_other_agents_go_on_while_one_prints_megabytes_of_beginnings",
        "test_redaction.py::test_beginnings_without_a_token_are_passed_over_as_a_whole",
        "steps/test_line.py::test_a_long_line_is_not_kept_to_be_cleaned_at_once",
        "steps/test_answer.py::test_a_driver_looks_around_between_the_slices_of_an_answer",
    ),
    "a key in a diff, a quotation, a log or source code, or a value in lines of base64": (
        "test_shapes.py::test_nothing_of_a_private_key_is_left",
        "test_redaction.py::test_a_value_is_found_in_base64_in_lines_wherever_a_line_ends",
    ),
    "a secret in what a script or an agent says, in an error, in an answer or in a state": (
        "test_secret_doors.py::test_what_a_script_says_is_cleaned_wherever_it_goes",
        "test_secret_doors.py::test_what_an_agent_says_is_cleaned",
        "test_secret_doors.py::test_an_answer_with_a_secret_is_refused_and_the_question_stays",
        "test_secret_doors.py::test_a_state_with_a_token_in_it_is_refused_without_showing_it",
    ),
    "a zip with 900,000 entries, an endless line, an endless output": (
        "attacks/test_bounds.py::test_a_zip_is_refused_for_what_it_lists_before_any_of_it_is_read",
        "attacks/test_bounds.py::test_a_line_without_end_is_trouble_of_its_turn",
        "attacks/test_bounds.py::test_a_transcript_ends_where_it_is_long_enough_and_says_so",
    ),
}

LOOPS = {
    # An agent of a loop, in a real repository with a queue and a check.
    "it claims without work, or says LOOP_COMPLETE": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[claims]",
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[says that all is done]",
    ),
    "it works on something else": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[works on another item]",
    ),
    "it edits or deletes its check": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[edits its check]",
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[deletes the failing test]",
    ),
    "it edits its item in the queue, or adds easy ones": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[edits its item]",
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[adds easy items]",
    ),
    "it writes `complete` into the state file": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[edits the state file]",
    ),
    "it amends the person's commit, or replaces the whole history": (
        "loops/test_cheats.py::test_an_honest_agent_counts[amends]",
    ),
    "it commits on another branch": ("loops/test_cheats.py::test_an_honest_agent_counts[switches branches]",),
    "it makes commits that name a task which a person is to judge": (
        "loops/test_judged.py::test_no_commit_of_an_agent_s_own_is_shown_to_whoever_judges",
    ),
    "it shows what git ignored": ("loops/test_attacks.py::test_it_does_not_end_the_night[a rule that is gone]",),
    "it leaves a key in a file, also with NULs or in UTF-16, in a name, a link, a message or progress.md": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[leaves a secret]",
        "loops/test_attacks.py::test_it_is_set_aside_and_named[a key beside a NUL]",
        "loops/test_attacks.py::test_it_is_set_aside_and_named[a key in two bytes]",
        "loops/test_attacks.py::test_it_is_set_aside_and_named[a key as a name]",
        "loops/test_attacks.py::test_it_is_set_aside_and_named[a key as a link]",
        "loops/test_attacks.py::test_it_does_not_end_the_night[a key in a message]",
        "loops/test_attacks.py::test_it_does_not_end_the_night[a key in the progress]",
    ),
    "it lets a filter of the person's run on its files, by attributes that it hides from Raymond": (
        "loops/test_attacks.py::test_it_does_not_end_the_night[attributes behind a rule]",
    ),
    "it prepares a cheat over several items": (
        "loops/test_branch.py::test_the_closing_check_ends_a_cheat_that_was_prepared_over_several_items",
        "loops/test_branch.py::test_what_an_earlier_night_may_not_change_the_next_one_may_not_either",
    ),
    "it adds a file of 20 MB": ("loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[adds a large file]",),
    "it adds a workflow of CI": (
        "loops/test_cheats.py::test_a_cheat_does_not_count_and_is_named[changes the build elsewhere]",
        "loops/test_attacks.py::test_it_is_set_aside_and_named[capitals]",
    ),
    "it leaves a repository inside of the project": (
        "loops/test_attacks.py::test_of_a_repository_of_its_own_only_the_files_are_committed",
    ),
    "it leaves a process that writes once its work was looked at": (
        "loops/test_attacks.py::test_a_process_that_an_agent_left_running_is_gone_before_the_commit",
        "loops/test_attacks.py::test_what_another_process_changes_after_the_check_is_not_committed",
    ),
    "it makes a pipe of `.gitignore`, `.gitattributes`, a record, or an object of git": (
        "loops/test_attacks.py::test_it_does_not_end_the_night[pipes that git reads]",
        "loops/test_attacks.py::test_it_does_not_end_the_night[a pipe for the learnings]",
    ),
    "it writes summaries, or rewrites progress.md": (
        "loops/test_attacks.py::test_summaries_of_an_agent_are_put_back_and_named",
        "loops/test_attacks.py::test_it_does_not_end_the_night[a key in a summary]",
        "loops/test_attacks.py::test_the_progress_can_be_added_to_and_not_rewritten",
    ),
    "it leads records out of the tree by links": (
        "loops/test_attacks.py::test_a_foreign_checkout_leads_no_document_out_of_the_tree",
        "loops/test_attacks.py::test_documents_behind_a_link_are_put_back_and_the_night_goes_on",
    ),
    "it changes a test, and the check is green also with the test as before": (
        "loops/test_attacks.py::test_a_changed_test_is_named_also_where_the_check_is_green_with_it_as_before",
    ),
    "with `ralph`, it does any of this in a red iteration, so that the next green one commits it": (
        "loops/test_ralph.py::test_what_a_red_iteration_did_is_not_what_the_green_one_begins_with",
    ),
    "it edits the queue or the learnings, stops the loop, accepts or rejects with Raymond's own commands": (
        "loops/test_agents_commands.py::test_an_agent_changes_neither_queue_nor_learnings_nor_the_end",
        "loops/test_agents_commands.py::test_an_agent_decides_nothing_that_was_set_aside",
        "loops/test_accepting.py::test_an_agent_accepts_edits_and_teaches_nothing",
    ),
    "in a loop over tasks or stories, it changes the check or the status of one": (
        "loops/test_task_loop.py::test_an_agent_cannot_change_what_decides_about_tasks",
        "loops/test_story_loop.py::test_an_agent_cannot_say_that_a_story_passes",
    ),
    "it lets a hook of the project change files after the check": (
        "loops/test_attacks.py::test_a_message_hook_that_changes_files_does_not_change_the_commit",
    ),
    "it adds a task to a spec, or smuggles something into a plan": (
        "loops/test_task_loop.py::test_a_task_that_an_agent_adds_is_only_proposed",
        "loops/test_story_loop.py::test_tasks_that_an_agent_plans_are_proposed_and_wait",
        "loops/test_proposing.py::test_what_is_smuggled_into_a_plan_is_only_quoted",
    ),
    "in a question to a person, it hides files or forges lines, or it changes files after the answer": (
        "loops/test_judged.py::test_nothing_that_an_agent_writes_looks_like_a_line_of_the_question",
        "loops/test_judged.py::test_a_yes_counts_only_for_the_files_that_were_asked_about",
    ),
    "a check that runs what it downloads, force-pushes or deletes a home, also hidden in other commands": (
        "language/test_lint_gates.py::test_a_gate_that_could_do_harm_is_refused_at_its_place",
        "loops/test_checks.py::test_a_dangerous_command_cannot_hide_in_tables",
        "loops/test_selection.py::test_what_is_denied_is_denied_however_it_is_run",
    ),
    "in internal mode, a sub-agent claims without work, edits its test, records its item, or changes git's settings": (
        "loops/test_internal.py::test_an_agent_that_says_it_is_done_is_not_believed_and_the_next_one_is_told",
        "loops/test_internal.py::test_a_changed_test_does_not_count",
        "loops/test_internal.py::test_nothing_is_recorded_that_was_not_handed_out",
        "loops/test_internal.py::test_no_loop_begins_without_a_word",
        "loops/test_internal_git.py::test_a_difference_pauses_before_anything_is_checked",
    ),
}

ATTACKS = {
    "workspaces": WORKSPACES,
    "checks in a workspace": CHECKS_IN_A_WORKSPACE,
    "checks here": CHECKS_HERE,
    "requests": REQUESTS,
    "processes": PROCESSES,
    "records": RECORDS,
    "checkouts": CHECKOUTS,
    "rights": RIGHTS,
    "texts": TEXTS,
    "loops": LOOPS,
}
