;; Answers with the same long text twice.
;; kind: health
;; budget: {"replyBytes": 100000}
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const 1024))
      (i32.store (i32.const 524) (i32.const 60000))
      (i32.store (i32.const 528) (i32.const 1024))
      (i32.store (i32.const 532) (i32.const 60000))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
