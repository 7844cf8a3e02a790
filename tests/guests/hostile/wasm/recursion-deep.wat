;; Calls itself until the stack is used up.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (func $deeper (param i32) (result i32)
      (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (call $deeper (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
