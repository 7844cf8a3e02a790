//! Translation of jumps, and the limits of its work.

use crate::dialect::bridged;

#[test]
fn jumps_become_what_luau_has() {
    let check = |text: &str, expected: &str| {
        let actual = bridged(text).map(|bridged| bridged.unwrap_or_else(|| text.to_owned()));
        assert_eq!(actual.as_deref(), Ok(expected), "{text}");
    };
    check("return 'goto x'", "return 'goto x'");
    check(
        "for i = 1, 3 do if i == 2 then goto next end f(i) ::next:: end",
        "for i = 1, 3 do if i == 2 then do continue end end f(i)  end",
    );
    check(
        "goto done; do return 1 end ::done:: return 2",
        "repeat do break end; do return 1 end until true return 2",
    );
    check(
        "local a\nif x then\n  goto out\nend\nf()\n::out::\nreturn a",
        "local a\nrepeat if x then\n  do break end\nend\nf()\nuntil true\nreturn a",
    );
    check(
        "while x do\n  goto\n  next ::next:: end",
        "while x do\n  do continue end\n  end",
    );
    check("f() ::unused::", "f() ");
}

#[test]
fn backward_jumps_become_loops() {
    let check = |text: &str, expected: &str| {
        assert_eq!(bridged(text), Ok(Some(expected.to_owned())), "{text}");
    };
    check(
        "::top:: i = i + 1 if i < 3 then goto top end return i -- done",
        "repeat local goto_top = false i = i + 1 if i < 3 then do goto_top = true continue end end return i \
         until not goto_top -- done",
    );
    check(
        "::top:: for i = 1, 3 do if f(i) then goto top end end",
        "repeat local goto_top = false for i = 1, 3 do if f(i) then do goto_top = true break end end end \
         if goto_top then continue end until not goto_top",
    );
}

#[test]
fn jumps_leave_nested_loops() {
    let actual = bridged("for i = 1, 3 do\n for j = 1, 3 do\n if f(i, j) then goto out end end end ::out:: return");
    let expected = "local goto_out = false repeat for i = 1, 3 do\n for j = 1, 3 do\n if f(i, j) then \
                    do goto_out = true break end end end if goto_out then break end end \
                    if goto_out then break end until true return";
    assert_eq!(actual, Ok(Some(expected.to_owned())));
}

#[test]
fn a_break_still_leaves_its_loop() {
    let actual = bridged("while x do\n if a then goto out end\n if b then break end\n ::out:: f() end");
    let expected = "while x do\n local break_out = false repeat if a then do break end end\n if b then \
                    do break_out = true break end end\n until true if break_out then break end f() end";
    assert_eq!(actual, Ok(Some(expected.to_owned())));
}

fn check_error(text: &str, line: usize, message: &str) {
    let error = bridged(text).unwrap_err();
    assert_eq!(
        (error.line, error.message.as_str()),
        (line, message),
        "{}",
        text.get(..100).unwrap_or(text)
    );
}

#[test]
fn a_jump_without_equivalent_names_its_line() {
    let check = |text: &str, line: usize| {
        assert_eq!(bridged(text).map_err(|difference| difference.line), Err(line), "{text}");
    };
    check("goto nowhere", 1);
    check("local function f() goto out end ::out::", 1);
    check("if a then\n goto out else ::out:: end", 2);
    check("if a then goto x end\nif b then goto y end f() ::x:: g() ::y::", 1);
    check("repeat ::top:: local x = f() if x then\ngoto top end until x", 2);
}

#[test]
fn a_block_has_a_label_once() {
    check_error("::x:: f()\n::x::", 2, "label x is already defined on line 1");
    check_error(
        "do\n::x::\nif a then goto x end\n\n::x:: end",
        5,
        "label x is already defined on line 2",
    );
    check_error(
        "if a then ::x:: f() else ::x:: g()\n::x:: end",
        2,
        "label x is already defined on line 1",
    );
    let apart = [
        "do ::x:: end ::x::",
        "if a then ::x:: else ::x:: end",
        "::x:: local function f() ::x:: end",
    ];
    for text in apart {
        assert!(bridged(text).is_ok(), "{text}");
    }
}

#[test]
fn the_innermost_label_is_the_one_meant() {
    let actual = bridged("do ::x:: if f() then goto x end end ::x:: g()");
    let expected = "do repeat local goto_x = false if f() then do goto_x = true continue end end \
                    until not goto_x end  g()";
    assert_eq!(actual, Ok(Some(expected.to_owned())));
    let actual = bridged("if a then f() elseif b then goto x else g() ::x:: end ::x::");
    let expected = "repeat if a then f() elseif b then do break end else g()  end until true";
    assert_eq!(actual, Ok(Some(expected.to_owned())));
}

#[test]
fn a_jump_into_the_scope_of_a_variable_is_refused() {
    let message = "goto x: it jumps into the scope of local y";
    check_error("goto x\nlocal y = 1 ::x:: return y", 1, message);
    check_error("if a then\ngoto x end local function y() end ::x:: y()", 2, message);
    check_error("repeat if a then goto x end\nlocal y = f() ::x:: until y", 1, message);
    assert!(bridged("if a then goto x end local y = 1 f(y) ::x::").is_ok());
    assert!(bridged("local y = 1 if a then goto x end do local z = y end ::x:: return y").is_ok());
}

/// Each of these texts takes a pass over its tokens; with work for each pair of them it would take hours.
#[test]
fn the_work_for_hostile_scripts_is_bounded() {
    let labels = (1..=10_000).fold(String::new(), |text, label| text + &format!("::l{label}::\n"));
    check_error(&labels, 201, "label l201: a script has at most 200 labels");
    check_error(&"::x::\n".repeat(10_000), 2, "label x is already defined on line 1");
    let jumps = "if a then goto x end\n".repeat(10_000);
    check_error(&format!("{jumps}::x::"), 201, "goto x: a script has at most 200 jumps");
    let deep = format!("{} goto x {}::x::", "do\n".repeat(100_000), "end ".repeat(100_000));
    check_error(&deep, 201, "do: a script with goto has at most 200 nested blocks");
    let blocks = (0..99).fold(String::new(), |text, label| {
        text + &format!("do ::x:: goto y{label} end ::y{label}:: ")
    });
    let breaks = "if a then break end ".repeat(50_000);
    let long = format!("while f() do if a then goto z end {breaks} {blocks} ::z:: g() end");
    assert!(bridged(&long).is_ok_and(|text| text.is_some()));
}

#[test]
fn labels_beside_a_break_are_read_in_order() {
    let actual = bridged("while a do ::x:: break ::y:: end");
    assert_eq!(actual, Ok(Some("while a do  break  end".to_owned())));
}
