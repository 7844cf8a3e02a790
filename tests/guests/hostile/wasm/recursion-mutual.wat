;; Two functions that call each other.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (func $ping (param i32) (result i32) (i32.add (call $pong (local.get 0)) (i32.const 1)))
    (func $pong (param i32) (result i32) (i32.add (call $ping (local.get 0)) (i32.const 1)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (call $ping (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
