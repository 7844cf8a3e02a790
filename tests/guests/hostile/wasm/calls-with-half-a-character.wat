;; Asks with a pointer that ends within a character.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "/a\e2")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $json (local.get $observed) (i32.const 600) (i32.const 3) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
